// Formulas with numbers in them, as MathML.

import { el } from "./dom.js";

const SPACE = "http://www.w3.org/1998/Math/MathML";

const node = (name, children, attributes = {}) => {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

export const mi = (name) => node("mi", [name]);
export const mn = (number) => node("mn", [String(number)]);
export const mo = (sign) => node("mo", [sign]);
export const row = (...parts) => node("mrow", parts);
export const frac = (top, bottom) => node("mfrac", [top, bottom]);
export const sup = (below, above) => node("msup", [below, above]);
export const sub = (above, below) => node("msub", [above, below]);

/** A function's name and its argument in parentheses. */
export const call = (name, ...inside) =>
  row(mi(name), mo("\u2061"), row(mo("("), ...inside, mo(")")));

/** Rows of a matrix in brackets. */
export const matrix = (rows) =>
  row(
    mo("["),
    node(
      "mtable",
      rows.map((cells) =>
        node(
          "mtr",
          cells.map((cell) => node("mtd", [cell])),
        ),
      ),
    ),
    mo("]"),
  );

/** Formulas in place of what the element held, with words for those who hear them. */
export function show(element, spoken, ...formulas) {
  // A narrow page breaks between formulas.
  const drawn = formulas.map((formula) => node("math", [formula], { "aria-hidden": "true" }));
  const shown = [el("span", { class: "spoken" }, spoken), ...drawn];
  if (element.textContent === shown.map(({ textContent }) => textContent).join("")) return;
  element.replaceChildren(...shown);
}
