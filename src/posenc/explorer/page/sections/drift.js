// The score beyond the trained length, and the error of angles in narrow dtypes.

import { decades, ticks } from "../draw/axes.js";
import { chart } from "../draw/chart.js";
import { createFigure } from "../interface/figure.js";
import { grouped, power } from "../interface/numbers.js";
import { spread } from "../math/arcs.js";
import { targetLength } from "../math/scaling.js";
import { attentionOf, driftDistances, scoresOf, worstAngle } from "../prose/long.js";
import { longSchedulesOf, schedulesRefusal } from "../state/facts.js";
import { METHODS } from "../state/limits.js";
import { refused } from "./arcs.js";

const DTYPES = ["bfloat16", "float32"];
const LEAST = 1e-9;

/** Fills this part of the section. */
export function createDrift(root, context, needs) {
  createFigure(root.querySelector('[data-figure="drift"]'), context, {
    ...{ name: "drift", needs, height: () => 310, draw: drawDrift, data: driftData },
    label: "The score of a query that meets its own key over the distance, plain and changed.",
    heavy: true,
  });
  createFigure(root.querySelector('[data-figure="precision"]'), context, {
    ...{ name: "precision", needs, height: () => 310, draw: drawPrecision, data: precisionData },
    label: "The largest error of an angle over the position, in bfloat16 and in float32.",
    heavy: true,
  });
}

function drawDrift(view) {
  if (refused(view)) return undefined;
  const { pen, state, colors } = view;
  const target = targetLength(state);
  const distances = driftDistances(target);
  const drawn = state.method === "none" ? ["none"] : ["none", state.method];
  const most = Math.max(...drawn.map((method) => attentionOf(state, method) ** 2));
  const { x, box } = chart(view, {
    x: { low: 1, high: target, log: true, label: "distance, positions", name: grouped },
    y: { low: -most, high: most, marks: ticks(-most, most, 8), label: "score, all pairs alike" },
    lines: drawn.map((method, i) => {
      const scoreAt = scoresOf(state, method);
      return {
        name: method === "none" ? "unchanged" : METHODS[method],
        points: distances.flatMap((d) => [d, scoreAt(d)]),
        style: { stroke: i ? colors.lines[1] : colors.lines[0], width: i ? 2 : 1.4 },
      };
    }),
  });
  const at = x(state.trained);
  pen.line(at, box.y, at, box.y + box.h, { stroke: colors.ink, dash: [6, 4] });
  const left = at < box.x + 90;
  pen.text(`L₀ = ${grouped(state.trained)}`, at + (left ? 6 : -6), box.y + 9, {
    ...{ size: 11, align: left ? "left" : "right" },
  });
  return undefined;
}

function driftData(state) {
  if (!longSchedulesOf(state)) return { columns: ["distance"], count: 1, row: () => [schedulesRefusal(state)] };
  const distances = driftDistances(targetLength(state));
  const [unchanged, changed] = ["none", state.method].map((method) => scoresOf(state, method));
  return {
    columns: ["distance", "unchanged", METHODS[state.method]],
    count: distances.length,
    row: (r) => [distances[r], unchanged(distances[r]), changed(distances[r])],
    nearRow: distances.length - 1,
  };
}

/** Odd numbers: those that rounding moves. */
const positions = (target) => [...new Set(spread(target, 120).map((p) => p | 1))];

function drawPrecision(view) {
  if (refused(view)) return undefined;
  const { state, colors } = view;
  const found = longSchedulesOf(state)[state.method];
  const target = targetLength(state);
  chart(view, {
    x: { low: 1, high: target + 1, log: true, label: "position", name: grouped },
    y: {
      ...{ low: LEAST, high: Math.max(target / 100, 10), log: true, label: "error of an angle, radians" },
      name: (v) => power(v, 0).split("\u00a0").at(-1),
      marks: decades(LEAST, Math.max(target / 100, 10)).filter((_, i) => i % 2 === 0),
    },
    gap: 56,
    lines: [
      ...DTYPES.map((dtype, i) => ({
        name: i ? "all in float32" : "position in bfloat16",
        points: positions(target).flatMap((p) => [p, worstAngle(found, p, dtype)]),
        style: { stroke: colors.lines[1 - i], width: 2, dash: i ? [] : [7, 3] },
      })),
      {
        name: "half a turn",
        points: [1, Math.PI, target + 1, Math.PI],
        style: { stroke: colors.ink, dash: [2, 3] },
      },
    ],
  });
  return undefined;
}

function precisionData(state) {
  const found = longSchedulesOf(state)?.[state.method];
  if (!found) return { columns: ["position"], count: 1, row: () => [schedulesRefusal(state)] };
  const shown = positions(targetLength(state));
  return {
    columns: ["position", ...DTYPES.map((dtype) => `${dtype}, radians`)],
    count: shown.length,
    row: (r) => [shown[r], ...DTYPES.map((dtype) => worstAngle(found, shown[r], dtype))],
    nearRow: shown.length - 1,
  };
}
