// The bar that stays: where the reader is, and the way to every section.

import { el } from "./dom.js";

/** Marks the section under the reader's eyes in the bar, and keeps its name in sight there. */
export function createContents(bar, sections) {
  const list = bar.querySelector("ol");
  const links = new Map(
    [...bar.querySelectorAll("a")].map((link) => [link.getAttribute("href").slice(1), link]),
  );
  showMore(list);
  let current = "";
  const go = (id) => {
    if (id === current) return;
    links.get(current)?.removeAttribute("aria-current");
    current = id;
    const link = links.get(id);
    link.setAttribute("aria-current", "true");
    const middle = link.offsetLeft - list.offsetLeft + link.offsetWidth / 2;
    list.scrollTo({ left: middle - list.clientWidth / 2, behavior: "instant" });
  };
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) go(target.id);
    },
    { rootMargin: "-25% 0px -70% 0px" },
  );
  for (const section of sections) watcher.observe(section);
  return { here: () => current || sections[0].id };
}

/** A list wider than its place fades where it goes on, and has a button for each side. */
function showMore(list) {
  const button = (words, name, by) => {
    const click = () => list.scrollBy({ left: by * 0.8 * list.clientWidth });
    return el("button", { type: "button", class: "more", "aria-label": name, on: { click } }, words);
  };
  const earlier = button("‹", "Earlier sections", -1);
  const later = button("›", "Later sections", 1);
  list.before(earlier);
  list.after(later);
  const show = () => {
    const rest = list.scrollWidth - list.clientWidth;
    earlier.disabled = list.scrollLeft < 1;
    later.disabled = list.scrollLeft > rest - 1;
    earlier.hidden = later.hidden = rest < 1;
    list.classList.toggle("goes-back", !earlier.disabled);
    list.classList.toggle("goes-on", !later.disabled);
  };
  list.addEventListener("scroll", show);
  new ResizeObserver(show).observe(list);
}
