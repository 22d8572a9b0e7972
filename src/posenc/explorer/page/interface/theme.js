// Light, dark, or as the reader's system has it.

import { el } from "./dom.js";

/** A list to choose from; figures are drawn again, since their colors come from the style. */
export function createTheme(scheduler) {
  const select = el(
    "select",
    { id: "theme" },
    [
      ["", "as the system"],
      ["light", "light"],
      ["dark", "dark"],
    ].map(([value, text]) => el("option", { value }, text)),
  );
  select.addEventListener("change", () => {
    document.documentElement.dataset.theme = select.value;
    scheduler.redrawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", scheduler.redrawAll);
  return el("div", { class: "field" }, el("label", { for: "theme" }, "Ground"), select);
}
