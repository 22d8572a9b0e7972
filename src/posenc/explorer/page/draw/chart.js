// A chart of lines in one frame, with the names of the lines under it.

import { axes, decades, linearScale, logScale, ticks } from "./axes.js";

const STEP = 18;

/** The height of the names under a chart of this width. */
const namesHeight = (names, width) => STEP * places(names, width).rows;

function places(names, width) {
  let [x, rows] = [12, 1];
  const found = names.map((name) => {
    const wide = 46 + name.length * 6.6;
    if (x > 12 && x + wide > width) [x, rows] = [12, rows + 1];
    x += wide;
    return [x - wide, rows - 1];
  });
  return { found, rows: names.length ? rows : 0 };
}

/** The size of the frame of a chart. */
function frameOf({ width, height }, names, gap) {
  return { x: gap + 20, y: 14, w: width - gap - 34, h: height - 62 - namesHeight(names, width) };
}

/**
 * Draws lines = [{ name?, points: [x0, y0, …], style }] in axes x, y = { low, high, label, log?, name? }.
 *
 * Gives { x, y, box, xOf(pixel) }: scales to draw more with.
 */
export function chart(view, { x, y, lines = [], gap = 44 }) {
  const { pen, width, height, colors } = view;
  const named = lines.filter(({ name }) => name);
  const names = named.map(({ name }) => name);
  const box = frameOf(view, names, gap);
  const at = {
    x: (x.log ? logScale : linearScale)(x.low, x.high, box.x, box.x + box.w),
    y: (y.log ? logScale : linearScale)(y.low, y.high, box.y + box.h, box.y),
  };
  const marks = (axis, count) =>
    axis.marks ?? (axis.log ? decades(axis.low, axis.high) : ticks(axis.low, axis.high, count));
  axes(pen, colors, box, {
    x: { ...x, at: at.x, marks: marks(x, box.w / 90) },
    y: { ...y, at: at.y, marks: marks(y, 5), lines: true, gap },
  });
  for (const { points, style } of lines) {
    const drawn = Array.from(points, (v, i) => (i % 2 ? at.y(clip(v, y)) : at.x(v)));
    if (drawn.length > 2) pen.polyline(drawn, style);
  }
  const { found } = places(names, width);
  named.forEach(({ name, style }, i) => {
    const [left, row] = found[i];
    const top = height - namesHeight(names, width) + row * STEP + 6;
    pen.line(left, top, left + 26, top, { stroke: style.stroke ?? style.fill, ...style, fill: null });
    pen.text(name, left + 32, top, { size: 12 });
  });
  const share = (px) => (px - box.x) / box.w;
  const xOf = (px) =>
    x.log ? x.low * (x.high / x.low) ** share(px) : x.low + share(px) * (x.high - x.low);
  return { ...at, box, xOf };
}

const clip = (v, { low, high }) => Math.min(Math.max(v, low), high);

/** The largest and the smallest number of a list, a little apart. */
export function span(values, room = 0.06) {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) [low, high] = [Math.min(low, v), Math.max(high, v)];
  const more = (high - low || 1) * room;
  return { low: low - more, high: high + more };
}

/** The line of a function over whole numbers. */
export function line(low, high, of, step = 1) {
  const points = [];
  for (let x = low; x <= high; x += step) points.push(x, of(x));
  return points;
}
