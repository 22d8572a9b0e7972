// The numbers of a figure around the cursor, as a table to read, hear and copy.

import { el, table } from "./dom.js";
import { fixed } from "./numbers.js";

const ROWS = 7;
const COLUMNS = 8;

/**
 * A folded table. data(state) gives { columns, count, row(i), nearRow, nearColumn }: the first
 * column names the rows and is always there.
 */
export function numbersTable({ data, label, name }, store) {
  const scroll = el("div", {
    class: "scroll",
    tabindex: "0",
    role: "region",
    "aria-label": `Numbers: ${label}`,
  });
  const element = el(
    "details",
    { class: "numbers", "data-numbers": name },
    el("summary", {}, "Numbers"),
    scroll,
  );
  const update = (state) => {
    if (element.open) scroll.replaceChildren(excerpt(data(state)));
  };
  element.addEventListener("toggle", () => update(store.get()));
  return { element, update };
}

function excerpt({ columns, count, row, nearRow = 0, nearColumn = 0 }) {
  const rows = around(nearRow, ROWS, count);
  const shown = [0, ...around(nearColumn, COLUMNS, columns.length - 1).map((c) => c + 1)];
  const caption =
    `Rows ${rows[0]} … ${rows.at(-1)} of ${count}` +
    (shown.length < columns.length ? `, columns around the cursor` : "");
  const written = rows.map((r) => {
    const cells = row(r);
    return shown.map((c) => text(cells[c]));
  });
  return table(
    caption,
    shown.map((c) => columns[c]),
    written,
  );
}

const text = (x) => (typeof x === "number" && !Number.isInteger(x) ? fixed(x, 6) : String(x));

function around(center, size, count) {
  const shown = Math.min(size, count);
  const from = Math.min(Math.max(center - (shown >> 1), 0), count - shown);
  return Array.from({ length: shown }, (_, i) => from + i);
}
