// A small matrix with names at its sides and, where they fit, numbers in its cells.

import { fixed } from "../interface/numbers.js";
import { mark, shades } from "./heatmap.js";
import { inkOn } from "./palettes.js";

/** Names under columns: each where it fits, else slanted, else as many numbers as fit. */
function columnNames(pen, label, names, x, y, cell) {
  const widest = Math.max(0, ...names.map((name) => name.length)) * 6.2 + 5;
  const words = names.some((name) => Number.isNaN(Number(name)));
  const slanted = words && widest > cell && cell >= 12;
  const every = slanted ? 1 : Math.ceil(widest / cell);
  names.forEach((name, c) => {
    if (c % every) return;
    const middle = x + (c + 0.5) * cell;
    if (slanted) pen.text(name, middle + 3, y + 8, { ...label, align: "right", turn: -0.7 });
    else pen.text(name, middle, y + 12, { ...label, align: "center" });
  });
}

/**
 * Draws values (rows of equal length) into x, y, w, h.
 *
 * title above; rows and columns: names, as many as fit; digits: decimals in the cells; marked:
 * { row, column? } framed. Gives the size of a cell.
 */
export function panel(pen, colors, given) {
  const { x, y, w, h, values, scale, title, rows = [], columns = [], digits, marked } = given;
  const [height, width] = [values.length, values[0].length];
  const cell = { w: w / width, h: h / height };
  pen.cells(x, y, w, h, width, height, shades(values.flat(), scale));
  if (title) pen.text(title, x, y - 20, { size: 12, weight: 600 });
  const label = { fill: colors.soft, size: 11 };
  const everyRow = Math.ceil(13 / cell.h);
  rows.forEach((name, r) => {
    if (r % everyRow) return;
    pen.text(name, x - 7, y + (r + 0.5) * cell.h, { ...label, align: "right" });
  });
  columnNames(pen, label, columns, x, y + h, cell.w);
  if (digits !== undefined && cell.w >= 15 + 9 * digits && cell.h >= 14) {
    values.forEach((line, r) =>
      line.forEach((v, c) =>
        pen.text(fixed(v, digits), x + (c + 0.5) * cell.w, y + (r + 0.5) * cell.h + 0.5, {
          align: "center",
          size: 11,
          fill: inkOn(scale.rgb(v)),
        }),
      ),
    );
  }
  if (marked && marked.row >= 0) {
    const whole = marked.column === undefined;
    mark(
      pen,
      colors,
      x + (whole ? 0 : marked.column * cell.w),
      y + marked.row * cell.h,
      whole ? w : cell.w,
      cell.h,
    );
  }
  return cell;
}
