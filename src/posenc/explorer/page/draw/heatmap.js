// Cells in color with rulers, a color bar and a cursor; a window where they would be too small.

import { axes, wholeTicks, written } from "./axes.js";

/** First index of a window of `shown` of `total`, moved from `start` only as far as it must. */
export function windowFrom(start, shown, total, cursor) {
  const kept = Math.min(Math.max(start, 0), Math.max(total - shown, 0));
  if (cursor < kept) return cursor;
  return cursor >= kept + shown ? cursor - shown + 1 : kept;
}

/** The size of a cell: whole device pixels, at least one CSS pixel. */
export function cellSize(room, count, ratio, most) {
  const fitting = Math.floor((room / count) * ratio) / ratio;
  return Math.min(Math.max(fitting, 1), most);
}

/** Shades of values, row by row, for a pen's cells. */
export function shades(values, scale) {
  const { packed, low, high } = scale;
  const painted = new Uint32Array(values.length);
  const factor = packed.length / (high - low || 1);
  const most = packed.length - 1;
  for (let i = 0; i < values.length; i++) {
    const at = Math.floor((values[i] - low) * factor);
    painted[i] = packed[at < 0 ? 0 : at > most ? most : at];
  }
  return painted;
}

/** Rulers of a grid whose cells start at (firstColumn, firstRow): marks stand at cell centers. */
export function gridAxes(pen, colors, grid, labels) {
  const { x, y, cell, rowHeight, columns, rows, firstColumn, firstRow } = grid;
  const box = { x, y, w: columns * cell, h: rows * rowHeight };
  axes(pen, colors, box, {
    x: {
      at: (j) => x + (j - firstColumn + 0.5) * cell,
      marks: wholeTicks(
        firstColumn,
        firstColumn + columns - 1,
        Math.max(2, Math.round(box.w / 80)),
      ),
      label: labels.x,
      name: labels.nameX,
    },
    y: {
      at: (p) => y + (p - firstRow + 0.5) * rowHeight,
      marks: wholeTicks(firstRow, firstRow + rows - 1, Math.max(2, Math.round(box.h / 40))),
      label: labels.y,
      name: labels.nameY,
    },
  });
}

/** A frame around a cell, visible on every color. */
export function mark(pen, colors, x, y, w, h) {
  const grow = 1.5;
  const frame = [x - grow, y - grow, w + 2 * grow, h + 2 * grow];
  pen.rect(...frame, { stroke: colors.ground, width: 4 });
  pen.rect(...frame, { stroke: colors.ink, width: 2 });
}

/** A color bar of a scale, standing, with its numbers. */
export function colorBar(pen, colors, x, y, h, scale, marks, label) {
  const steps = 128;
  const values = Float64Array.from(
    { length: steps },
    (_, i) => scale.high - ((i + 0.5) / steps) * (scale.high - scale.low),
  );
  pen.cells(x, y, 12, h, 1, steps, shades(values, scale));
  for (const m of marks) {
    const at = y + ((scale.high - m) / (scale.high - scale.low)) * h;
    pen.line(x + 12, at, x + 16, at, { stroke: colors.soft });
    pen.text(written(m), x + 20, at, { fill: colors.soft, size: 11 });
  }
  if (label) pen.text(label, x, y - 12, { fill: colors.soft, size: 11 });
}

/** Where a window stands in the whole: two thin bars with words, when there is more than is shown. */
export function minimap(pen, colors, grid, totals) {
  const { x, y, cell, rowHeight, columns, rows, firstColumn, firstRow } = grid;
  const [w, h] = [columns * cell, rows * rowHeight];
  const bar = { fill: colors.faint };
  const thumb = { fill: colors.accent };
  if (columns < totals.columns) {
    pen.rect(x, y - 12, w, 5, bar);
    const [from, long] = [firstColumn / totals.columns, columns / totals.columns];
    pen.rect(x + from * w, y - 12, Math.max(long * w, 3), 5, thumb);
    const told = `${totals.across} ${firstColumn} … ${firstColumn + columns - 1} of ${totals.columns}`;
    pen.text(told, x, y - 22, { fill: colors.soft, size: 11 });
  }
  if (rows < totals.rows) {
    pen.rect(x + w + 7, y, 5, h, bar);
    const [from, long] = [firstRow / totals.rows, rows / totals.rows];
    pen.rect(x + w + 7, y + from * h, 5, Math.max(long * h, 3), thumb);
    const told = `${totals.down} ${firstRow} … ${firstRow + rows - 1} of ${totals.rows}`;
    pen.text(told, x + w, y - 22, { fill: colors.soft, size: 11, align: "right" });
  }
}
