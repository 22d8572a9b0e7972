/* What scrolls is reached by keyboard; what fits is no stop for Tab. */
function reachable() {
  for (const each of document.querySelectorAll("pre, .table-wrapper, .formula, p:has(> img)")) {
    const wider = each.scrollWidth > each.clientWidth;
    const taller = each.scrollHeight > each.clientHeight;
    if (wider || taller) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

addEventListener("load", reachable);
addEventListener("resize", reachable);
