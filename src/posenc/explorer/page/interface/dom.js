// Elements in one expression. Text is always text: nothing that a reader types becomes markup.

/** An element: attributes, `on` for listeners, and children that are nodes or text. */
export function el(tag, { on = {}, ...attributes } = {}, ...children) {
  return filled(document.createElement(tag), on, attributes, children);
}

function filled(element, on, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.flat());
  return element;
}

/** Text that changes only when it differs, so that screen readers hear no repetitions. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A table of texts; `head` names the columns, where they have names, and the first cell its row. */
export function table(caption, head, rows) {
  const top = el(
    "tr",
    {},
    head.map((name) => (name === "" ? td("") : el("th", { scope: "col" }, String(name)))),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      row.map((cell, i) => (i ? td(cell) : el("th", { scope: "row" }, ...nodes(cell)))),
    ),
  );
  return el("table", {}, el("caption", {}, caption), el("thead", {}, top), el("tbody", {}, body));
}

const nodes = (cell) => [cell instanceof Node ? cell : String(cell)];
const td = (cell) => el("td", {}, ...nodes(cell));
