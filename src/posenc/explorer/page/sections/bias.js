// ALiBi and T5: what is added to a score, by distance and head.

import { axes, linearScale, ticks, wholeTicks } from "../draw/axes.js";
import { createButtons } from "../interface/choices.js";
import { say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { whole } from "../interface/numbers.js";
import { bias, slopes } from "../math/alibi.js";
import { aboutBias, aboutPenalty, bucketOf } from "../prose/relatives.js";

const NEEDS = ["heads", "head", "reach", "offset"];
const FAR = 160;

/** Fills this part of the section. */
export function createBias(root, context) {
  const { store, scheduler } = context;
  const controls = root.querySelector("[data-heads]");
  const fields = [createField(store, "heads", "Heads"), createField(store, "head", "Head h")];
  controls.append(...fields.map((field) => field.element));
  const buttons = controls.appendChild(document.createElement("div"));
  createButtons(buttons, context, "reach", "Keys", [
    ["both", "keys on both sides"],
    ["past", "past keys only"],
  ]);
  const keys = (key, { offset }) =>
    ({ ArrowLeft: { offset: offset - 1 }, ArrowRight: { offset: offset + 1 } })[key];
  createFigure(root.querySelector('[data-figure="alibi"]'), context, {
    name: "alibi",
    label: "ALiBi's bias over the distance, one line a head.",
    needs: NEEDS,
    height: () => 290,
    draw: drawAlibi,
    data: (state) =>
      dataOf(
        state,
        slopes(state.heads).map((m, h) => [`head ${h}`, (d) => bias(m, d)]),
      ),
    keys,
  });
  createFigure(root.querySelector('[data-figure="t5"]'), context, {
    name: "t5",
    label: "T5's bucket over the distance.",
    needs: NEEDS,
    height: () => 290,
    draw: drawBuckets,
    data: (state) => dataOf(state, [["bucket", (d) => bucketOf(state, d)]]),
    keys,
  });
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    say(live("penalty"), aboutPenalty(state));
    say(live("bias"), aboutBias(state));
  });
}

// Distances, query − key: those of keys before their query are positive.
const lowest = ({ reach }) => (reach === "both" ? -FAR : 0);
const highest = FAR;

function frame({ pen, state, width, height, colors }, low, high, label, gap) {
  const box = { x: 62, y: 16, w: width - 78, h: height - 64 };
  const x = linearScale(lowest(state), highest, box.x, box.x + box.w);
  const y = linearScale(low, high, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: {
      at: x,
      marks: wholeTicks(lowest(state), highest, box.w / 70),
      label: "distance query − key, positions",
      name: whole,
    },
    y: { at: y, marks: ticks(low, high, 5), label, lines: true, gap },
  });
  const inside = (d) => d >= lowest(state) && d <= highest;
  if (inside(state.offset)) {
    pen.line(x(state.offset), box.y, x(state.offset), box.y + box.h, {
      stroke: colors.soft,
      dash: [2, 3],
    });
  }
  const hit = (px) => ({
    state: {
      offset: Math.round(lowest(state) + ((px - box.x) / box.w) * (highest - lowest(state))),
    },
  });
  return { x, y, hit, inside };
}

function drawAlibi(view) {
  const { pen, state, colors } = view;
  const all = slopes(state.heads);
  const { x, y, hit, inside } = frame(view, -Math.max(...all) * FAR, 0, "bias (ALiBi)", 46);
  all.forEach((m, h) => {
    const points = [lowest(state), 0, highest].flatMap((d) => [x(d), y(bias(m, d))]);
    const chosen = h === state.head;
    pen.polyline(points, {
      stroke: chosen ? colors.lines[1] : colors.lines[0],
      width: chosen ? 2.8 : 1,
    });
  });
  if (inside(state.offset)) {
    const at = y(bias(all[state.head], state.offset));
    pen.circle(x(state.offset), at, 6, { stroke: colors.ink, width: 2 });
  }
  return hit;
}

function drawBuckets(view) {
  const { pen, state, colors } = view;
  const { x, y, hit, inside } = frame(view, 0, 32, "bucket (T5, 32)", 40);
  // A staircase on either side of the query; between them lies no step.
  for (const [from, to] of [
    [lowest(state), -1],
    [0, highest],
  ]) {
    const points = [];
    for (let d = from; d <= to; d++) {
      const at = y(bucketOf(state, d));
      points.push(x(Math.max(d - 0.5, lowest(state))), at, x(Math.min(d + 0.5, highest)), at);
    }
    if (points.length) pen.polyline(points, { stroke: colors.lines[0], width: 1.8 });
  }
  if (inside(state.offset)) {
    const at = y(bucketOf(state, state.offset));
    pen.circle(x(state.offset), at, 6, { stroke: colors.ink, width: 2 });
  }
  return hit;
}

function dataOf(state, columns) {
  const first = lowest(state);
  const count = highest - first + 1;
  return {
    columns: ["query − key", ...columns.map(([name]) => name)],
    count,
    row: (i) => [first + i, ...columns.map(([, of]) => of(first + i))],
    nearRow: Math.min(Math.max(state.offset - first, 0), count - 1),
    nearColumn: state.head,
  };
}
