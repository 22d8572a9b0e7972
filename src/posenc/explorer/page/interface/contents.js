// The bar that stays: where the reader is, and the way to every section.

/** Marks the section under the reader's eyes in the bar, and keeps its name in sight there. */
export function createContents(bar, sections) {
  const list = bar.querySelector("ol");
  const links = new Map(
    [...bar.querySelectorAll("a")].map((link) => [link.getAttribute("href").slice(1), link]),
  );
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
