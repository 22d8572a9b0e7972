// The arc of angles of each pair, in training and at the target.

import { chart } from "../draw/chart.js";
import { createFigure } from "../interface/figure.js";
import { grouped } from "../interface/numbers.js";
import { targetLength } from "../math/scaling.js";
import { arcsOf } from "../prose/long.js";
import { longSchedulesOf, schedulesRefusal } from "../state/facts.js";
import { METHODS } from "../state/limits.js";

const TURN = 2 * Math.PI;
const SHOWN = 8;

/** Fills this part of the section. */
export function createArcs(root, context, needs) {
  const options = { needs, data: arcsData, keys };
  createFigure(root.querySelector('[data-figure="arcs"]'), context, {
    ...options,
    name: "arcs",
    label: "Eight pairs as rings: inside the angles met in training, outside those at the target.",
    height: (width) => (SHOWN / across(width)) * tall(width) + 28,
    draw: drawRings,
  });
  createFigure(root.querySelector('[data-figure="reach"]'), context, {
    ...options,
    name: "reach",
    label: "Turns of every pair within the trained length and within the target.",
    height: () => 310,
    draw: drawReach,
  });
}

const keys = (key, { method }) => {
  const names = Object.keys(METHODS);
  const to = names.indexOf(method) + ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0);
  return key.startsWith("Arrow") ? { method: names[Math.min(Math.max(to, 0), names.length - 1)] } : undefined;
};

/** Says why there is nothing to draw, and whether that is so. */
export function refused({ pen, state, width, height, colors }) {
  if (longSchedulesOf(state)) return false;
  const style = { align: "center", fill: colors.soft, size: width < 500 ? 10 : 12 };
  pen.text(schedulesRefusal(state), width / 2, height / 2, style);
  return true;
}

const across = (width) => (width < 560 ? 4 : 8);
const tall = (width) => Math.min(width / across(width), 108) + 34;

function ring(pen, x, y, radius, from, to, style) {
  if (to <= from) return;
  const points = [];
  const steps = Math.max(Math.ceil((to - from) * 14), 2);
  for (let s = 0; s <= steps; s++) {
    const angle = from + ((to - from) * s) / steps;
    points.push(x + radius * Math.cos(angle), y - radius * Math.sin(angle));
  }
  pen.polyline(points, style);
}

function drawRings(view) {
  if (refused(view)) return undefined;
  const { pen, state, width, height, colors } = view;
  const all = arcsOf(state);
  const shown = Math.min(SHOWN, all.length);
  const [perRow, step] = [across(width), tall(width)];
  const [wide, radius] = [width / perRow, (step - 34) * 0.36];
  for (let s = 0; s < shown; s++) {
    const i = shown > 1 ? Math.round((s * (all.length - 1)) / (shown - 1)) : 0;
    const { kind, before, after } = all[i];
    const [x, y] = [((s % perRow) + 0.5) * wide, Math.floor(s / perRow) * step + radius * 1.25 + 18];
    pen.circle(x, y, radius, { stroke: colors.faint });
    ring(pen, x, y, radius, 0, before, { stroke: colors.lines[0], width: 6 });
    const met = Math.min(after, before);
    ring(pen, x, y, radius * 1.25, 0, met, { stroke: colors.soft, width: 3 });
    if (kind === "new") {
      ring(pen, x, y, radius * 1.25, before, after, { stroke: colors.lines[1], width: 5 });
    }
    const label = { align: "center", size: 11 };
    pen.text(`pair ${i}`, x, y + radius * 1.25 + 14, { ...label, weight: 600 });
    pen.text(kind === "new" ? "new" : kind, x, y, { ...label, fill: colors.soft });
  }
  legend(pen, width, height - 10, colors);
  return undefined;
}

function legend(pen, width, y, colors) {
  const pitch = Math.min(width / 3, 190);
  [
    [colors.lines[0], 6, "met in training"],
    [colors.soft, 3, "target, met"],
    [colors.lines[1], 5, "target, new"],
  ].forEach(([stroke, thick, words], i) => {
    const x = 6 + i * pitch;
    pen.line(x, y, x + 18, y, { stroke, width: thick });
    pen.text(words, x + 23, y, { size: 11 });
  });
}

function drawReach(view) {
  if (refused(view)) return undefined;
  const { pen, state, colors } = view;
  const found = longSchedulesOf(state);
  const reads = targetLength(state);
  const turns = (frequencies, length) => frequencies.map((omega) => (omega * length) / TURN);
  const [trained, reached] = [turns(found.none, state.trained), turns(found[state.method], reads)];
  const all = [...trained, ...reached, 1];
  const [low, high] = [Math.min(...all) / 1.5, Math.max(...all) * 1.5];
  const points = (values) => values.flatMap((v, i) => [i, v]);
  const last = trained.length - 1;
  const { x, y } = chart(view, {
    x: { low: 0, high: last, label: "pair i" },
    y: { low, high, log: true, label: "turns", name: grouped },
    gap: 54,
    lines: [
      { name: "met in training", points: points(trained), style: { stroke: colors.lines[0], width: 2.4 } },
      {
        name: `at the target, ${METHODS[state.method]}`,
        points: points(reached),
        style: { stroke: colors.soft, width: 2, dash: [7, 3] },
      },
      { name: "one turn", points: [0, 1, last, 1], style: { stroke: colors.ink, dash: [2, 3] } },
    ],
  });
  arcsOf(state).forEach(({ kind, before, after }, i) => {
    if (kind !== "new") return;
    const ends = [before, after].map((angle) => y(angle / TURN));
    pen.line(x(i), ends[0], x(i), ends[1], { stroke: colors.lines[1], width: 3 });
  });
  return undefined;
}

function arcsData(state) {
  const all = arcsOf(state);
  if (!all) return { columns: ["pair"], count: 1, row: () => [schedulesRefusal(state)] };
  return {
    columns: ["pair", "met, radians", "at the target, radians", "never met", "kind"],
    count: all.length,
    row: (i) => [i, all[i].before, all[i].after, all[i].fresh, all[i].kind],
    nearRow: all.length - 1,
  };
}
