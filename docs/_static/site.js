/* What scrolls sideways is reached by keyboard; what fits is no stop for Tab. */
function reachable() {
  for (const each of document.querySelectorAll("pre, .table-wrapper, .formula")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

addEventListener("load", reachable);
addEventListener("resize", reachable);
