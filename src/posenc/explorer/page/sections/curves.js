// Section 3: columns as curves, and all wavelengths on one logarithmic ruler.

import { axes, decades, linearScale, logScale, wholeTicks, written } from "../draw/axes.js";
import { windowFrom } from "../draw/heatmap.js";
import { el, say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { grouped, significant } from "../interface/numbers.js";
import { CONVENTIONS } from "../math/conventions.js";
import { frequency, value, wavelength } from "../math/sincos.js";
import { aboutBase, aboutCurves, aboutLanes, aboutWavelengths } from "../prose/curves.js";
import { channelsOf, pairAt, wavelengthsOf } from "../state/facts.js";

const NEEDS = ["length", "dim", "base", "position", "dimension", "convention", "pins"];
const LANE = 76;
const MOST_PINS = 6;

/** Fills the section. */
export function createCurves(root, context) {
  const { scheduler, store } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const start = { position: 0 };
  createFigure(root.querySelector('[data-figure="curves"]'), context, {
    name: "curves",
    label: "Chosen columns as curves over the position, dots at whole positions.",
    needs: NEEDS,
    height: (_, state) => 56 + LANE * (1 + state.pins.length),
    draw: (view) => drawCurves(view, start),
    data: curvesData,
    keys: (key, state) => (key === "Enter" ? { pins: toggled(state) } : undefined),
  });
  createFigure(root.querySelector('[data-figure="wavelengths"]'), context, {
    name: "wavelengths",
    label: "Wavelength of every dimension on a logarithmic scale, with the length as a line.",
    needs: NEEDS,
    height: () => 270,
    draw: drawWavelengths,
    data: wavelengthData,
  });
  const pins = root.querySelector("[data-pins]");
  scheduler.add(root, NEEDS, (state) => {
    showPins(pins, state, store);
    say(live("lanes"), aboutLanes(state));
    say(live("curves"), aboutCurves(state));
    say(live("wavelengths"), aboutWavelengths(state));
    say(live("base"), aboutBase(state));
  });
}

const toggled = ({ pins, dimension }) =>
  pins.includes(dimension)
    ? pins.filter((j) => j !== dimension)
    : [...pins, dimension].slice(0, MOST_PINS);

function showPins(host, state, store) {
  const { pins, dimension } = state;
  const full = pins.length >= MOST_PINS && !pins.includes(dimension);
  const words = pins.includes(dimension) ? `Unpin ${dimension}` : `Pin dimension ${dimension}`;
  const set = (change) => () => store.set({ pins: change(store.get()) });
  const main = el(
    "button",
    { type: "button", "data-pin": "cursor", disabled: full, on: { click: set(toggled) } },
    full ? "Six are pinned" : words,
  );
  const others = pins.map((j) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        on: { click: set((now) => now.pins.filter((pin) => pin !== j)) },
        "aria-label": `Unpin dimension ${j}`,
      },
      `${j} ×`,
    ),
  );
  // Kept where the focus is, so that a key pressed twice meets the same button.
  const focused = [...host.children].indexOf(document.activeElement);
  host.replaceChildren(main, ...others);
  if (focused >= 0) host.children[Math.min(focused, host.children.length - 1)].focus();
}

/** The lanes: the cursor's pair, or its channel alone, and then the pins. */
function lanes(state) {
  const pair = pairAt(state);
  const first = pair ? [pair.sin, pair.cos] : [state.dimension];
  return [first, ...state.pins.map((j) => [j])];
}

function drawCurves({ pen, state, width, height, colors }, start) {
  const { length, base, convention, dim, position } = state;
  const all = channelsOf(convention, dim);
  const { first } = CONVENTIONS[convention];
  const box = { x: 56, y: 10, w: width - 56 - (width < 560 ? 118 : 150), h: height - 56 };
  const shown = Math.min(length, Math.max(20, Math.floor(box.w / 7)));
  start.position = windowFrom(start.position, shown, length, position);
  const x = linearScale(start.position, start.position + shown - 1, box.x, box.x + box.w);
  axes(pen, colors, box, {
    x: {
      at: x,
      marks: wholeTicks(start.position, start.position + shown - 1, box.w / 70),
      label: shown < length ? `position p (${shown} of ${length})` : "position p",
    },
  });
  pen.line(x(position), box.y, x(position), box.y + box.h, { stroke: colors.soft, dash: [2, 3] });
  lanes(state).forEach((lane, l) => {
    const middle = box.y + (l + 0.5) * LANE;
    const y = (v) => middle - v * (LANE / 2 - 9);
    pen.line(box.x, middle, box.x + box.w, middle, { stroke: colors.faint });
    for (const v of [-1, 1])
      pen.text(written(v), box.x - 8, y(v), { fill: colors.soft, size: 10, align: "right" });
    lane.forEach((j, c) => {
      const stroke = colors.lines[l % colors.lines.length];
      const at = (p) => value(all[j], base, p + first);
      const points = [];
      for (let px = 0; px <= box.w; px += 1) {
        const p = start.position + (px / box.w) * (shown - 1);
        points.push(box.x + px, y(at(p)));
      }
      pen.polyline(points, { stroke, width: 1.4, dash: c ? [5, 4] : [] });
      for (let p = start.position; p < start.position + shown; p++) {
        const dot = { fill: c ? colors.ground : stroke, stroke, width: 1.2 };
        pen.circle(x(p), y(at(p)), p === position ? 4.5 : 2, dot);
      }
      const words = `${j} ${all[j].kind}  λ ${significant(wavelength(frequency(base, all[j])), 3)}`;
      pen.text(
        all[j].kind === "zero" ? `${j} zero` : words,
        box.x + box.w + 12,
        middle + (c - (lane.length - 1) / 2) * 18,
        {
          fill: colors.ink,
          size: 12,
          weight: l ? 400 : 600,
        },
      );
    });
  });
  return (px) => ({
    state: { position: Math.round(start.position + ((px - box.x) / box.w) * (shown - 1)) },
  });
}

function curvesData(state) {
  const { base, convention, dim, length, position } = state;
  const all = channelsOf(convention, dim);
  const chosen = lanes(state).flat();
  return {
    columns: ["position", ...chosen.map((j) => `dimension ${j}`)],
    count: length,
    row: (p) => [p, ...chosen.map((j) => value(all[j], base, p + CONVENTIONS[convention].first))],
    nearRow: position,
  };
}

const lambdas = ({ base, convention, dim }) => wavelengthsOf(convention, dim, base);

function drawWavelengths({ pen, state, width, height, colors }) {
  const found = lambdas(state);
  const finite = found.filter(Number.isFinite);
  const low = Math.min(2 * Math.PI, state.length) * 0.8;
  const high = Math.max(...finite, state.length, 10) * 1.3;
  const box = { x: 66, y: 12, w: width - 86, h: height - 62 };
  const x = linearScale(0, Math.max(state.dim - 1, 1), box.x, box.x + box.w);
  const y = logScale(low, high, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: { at: x, marks: wholeTicks(0, state.dim - 1, width / 80), label: "dimension j" },
    y: {
      at: y,
      marks: decades(low, high),
      label: "wavelength, positions",
      lines: true,
      gap: 52,
      name: grouped,
    },
  });
  pen.line(box.x, y(state.length), box.x + box.w, y(state.length), {
    stroke: colors.lines[1],
    width: 1.5,
  });
  pen.text(`L = ${state.length}`, box.x + box.w, y(state.length) - 9, {
    fill: colors.ink,
    size: 11,
    align: "right",
  });
  const radius = Math.max(1, Math.min(3, box.w / state.dim / 2.4));
  found.forEach((lambda, j) => {
    if (!Number.isFinite(lambda)) return;
    const full = lambda <= state.length;
    pen.circle(
      x(j),
      y(lambda),
      radius,
      full ? { fill: colors.lines[0] } : { stroke: colors.lines[0] },
    );
  });
  const here = found[state.dimension];
  if (Number.isFinite(here))
    pen.circle(x(state.dimension), y(here), 6, { stroke: colors.ink, width: 2 });
  return (px) => {
    const j = Math.round(((px - box.x) / box.w) * (state.dim - 1));
    return { state: { dimension: Math.min(Math.max(j, 0), state.dim - 1) } };
  };
}

function wavelengthData(state) {
  const found = lambdas(state);
  return {
    columns: ["dimension", "wavelength", "turns in the length"],
    count: state.dim,
    row: (j) => [j, found[j], state.length / found[j]],
    nearRow: state.dimension,
  };
}
