// Two positions on a ruler, each to be dragged.

import { axes, linearScale, wholeTicks } from "../draw/axes.js";

/** Draws it; a gesture keeps the handle that it began with. */
export function drawRuler({ pen, state, width, colors }) {
  const { length, position, offset } = state;
  const box = { x: 24, y: 52, w: width - 48, h: 0 };
  const x = linearScale(0, length - 1, box.x, box.x + box.w);
  axes(pen, colors, box, {
    x: { at: x, marks: wholeTicks(0, length - 1, width / 70), label: "position" },
  });
  pen.line(box.x, box.y, box.x + box.w, box.y, { stroke: colors.soft, width: 2 });
  const second = position + offset;
  handle(pen, colors, x(position), box.y, `p = ${position}`, colors.lines[0]);
  if (second >= 0 && second < length) {
    handle(pen, colors, x(second), box.y, `q = ${second}`, colors.lines[1], true);
  }
  return (px, _, gesture) => {
    const at = Math.min(Math.max(Math.round(((px - box.x) / box.w) * (length - 1)), 0), length - 1);
    const held =
      gesture === "p" || gesture === "q"
        ? gesture
        : Math.abs(px - x(position)) <= Math.abs(px - x(second))
          ? "p"
          : "q";
    // The handle that is not held stays where it is.
    const moved = held === "p" ? { position: at, offset: second - at } : { offset: at - position };
    return { gesture: held, state: moved };
  };
}

function handle(pen, colors, x, y, words, fill, square = false) {
  // The two names stand one above the other, so that near positions do not hide them.
  const up = square ? 37 : 20;
  if (square) pen.line(x, y - up + 8, x, y, { stroke: colors.soft });
  const edge = { fill, stroke: colors.ground, width: 2 };
  if (square) pen.rect(x - 7, y - 7, 14, 14, edge);
  else pen.circle(x, y, 8, edge);
  pen.text(words, x, y - up, { align: "center", size: 12, weight: 600 });
}
