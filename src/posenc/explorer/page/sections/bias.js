// ALiBi and T5: what is added to a score, by distance and head.

import { axes, linearScale, ticks, wholeTicks } from "../draw/axes.js";
import { createButtons } from "../interface/choices.js";
import { say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { fixed, significant, whole } from "../interface/numbers.js";
import { bias, slopes } from "../math/alibi.js";
import { normal } from "../math/random.js";
import { bucket } from "../math/t5.js";

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
  const live = root.querySelector('[data-live="bias"]');
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    say(live, aboutBias(state));
  });
}

const lowest = -FAR;
const highest = ({ reach }) => (reach === "both" ? FAR : 0);
const bucketOf = ({ reach }, distance) => bucket(distance, { bidirectional: reach === "both" });

function frame({ pen, state, width, height, colors }, low, high, label, gap) {
  const box = { x: 62, y: 16, w: width - 78, h: height - 64 };
  const x = linearScale(lowest, highest(state), box.x, box.x + box.w);
  const y = linearScale(low, high, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: {
      at: x,
      marks: wholeTicks(lowest, highest(state), box.w / 70),
      label: "key − query, positions",
      name: whole,
    },
    y: { at: y, marks: ticks(low, high, 5), label, lines: true, gap },
  });
  if (state.offset >= lowest && state.offset <= highest(state)) {
    pen.line(x(state.offset), box.y, x(state.offset), box.y + box.h, {
      stroke: colors.soft,
      dash: [2, 3],
    });
  }
  const hit = (px) => ({
    state: { offset: Math.round(lowest + ((px - box.x) / box.w) * (highest(state) - lowest)) },
  });
  return { x, y, hit, inside: (d) => d >= lowest && d <= highest(state) };
}

function drawAlibi(view) {
  const { pen, state, colors } = view;
  const all = slopes(state.heads);
  const { x, y, hit, inside } = frame(view, -Math.max(...all) * FAR, 0, "bias (ALiBi)", 46);
  all.forEach((m, h) => {
    const points = [lowest, 0, highest(state)].flatMap((d) => [x(d), y(bias(m, d))]);
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
    [lowest, 0],
    [1, highest(state)],
  ]) {
    const points = [];
    for (let d = from; d <= to; d++) {
      const at = y(bucketOf(state, d));
      points.push(x(Math.max(d - 0.5, lowest)), at, x(Math.min(d + 0.5, highest(state))), at);
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
  const count = highest(state) - lowest + 1;
  return {
    columns: ["key − query", ...columns.map(([name]) => name)],
    count,
    row: (i) => [lowest + i, ...columns.map(([, of]) => of(lowest + i))],
    nearRow: Math.min(Math.max(state.offset - lowest, 0), count - 1),
    nearColumn: state.head,
  };
}

function aboutBias(state) {
  const { heads, head, offset, reach } = state;
  if (reach === "past" && offset > 0) {
    return `The key lies ${offset} positions after its query: with past keys only it is masked.`;
  }
  const slope = slopes(heads)[head];
  const number = bucketOf(state, offset);
  const draw = normal(1000 + head);
  const entries = Array.from({ length: 32 }, draw);
  return (
    `Key − query = ${whole(offset)}, head ${head} of ${heads}: ALiBi adds −${significant(slope)} × ` +
    `${Math.abs(offset)} = ${fixed(bias(slope, offset))}. T5 looks into bucket ${number}, where this ` +
    `head has ${fixed(entries[number], 2)} here (seeded random, not learned).`
  );
}
