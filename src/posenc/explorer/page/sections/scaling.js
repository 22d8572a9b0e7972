// Wavelengths of a rotary model, plain and stretched, with both lengths drawn.

import { axes, decades, linearScale, logScale, wholeTicks } from "../draw/axes.js";
import { say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { grouped } from "../interface/numbers.js";
import { targetLength } from "../math/scaling.js";
import { wavelength } from "../math/sincos.js";
import { aboutLengths, aboutScaling } from "../prose/relatives.js";
import { schedulesOf, schedulesRefusal } from "../state/facts.js";

const NEEDS = ["dim", "base", "factor", "trained", "dimension"];

/** Fills this part of the section. */
export function createScaling(root, context) {
  const { store, scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const fields = [
    createField(store, "factor", "Factor s", { by: "ratio" }),
    createField(store, "trained", "Trained length L₀", { by: "ratio" }),
  ];
  root.querySelector("[data-scaling]").append(...fields.map((field) => field.element));
  createFigure(root.querySelector('[data-figure="scaling"]'), context, {
    name: "scaling",
    label: "Wavelength of every rotary pair: plain, linear, NTK and YaRN, with both lengths.",
    needs: NEEDS,
    height: () => 340,
    draw: drawScaling,
    data: scalingData,
  });
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    say(live("scaling"), aboutScaling(state));
    say(live("lengths"), aboutLengths(state));
  });
}

function drawScaling({ pen, state, width: wide, height, colors }) {
  const found = schedulesOf(state);
  if (!found) {
    pen.text(schedulesRefusal(state), wide / 2, height / 2, { align: "center", fill: colors.soft });
    return undefined;
  }
  const [trained, longer] = [state.trained, targetLength(state)];
  const all = Object.values(found).flat().map(wavelength);
  const [low, high] = [5, Math.max(...all, longer) * 1.4];
  const pairs = found.plain.length;
  const box = { x: 74, y: 14, w: wide - 96, h: height - 86 };
  const x = linearScale(0, pairs - 1, box.x, box.x + box.w);
  const y = logScale(low, high, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: { at: x, marks: wholeTicks(0, pairs - 1, box.w / 80), label: "pair i" },
    y: {
      at: y,
      marks: decades(low, high),
      label: "wavelength, positions",
      lines: true,
      gap: 58,
      name: grouped,
    },
  });
  for (const [length, name] of [
    [trained, "L₀ trained"],
    [longer, "s·L₀ to be read"],
  ]) {
    pen.line(box.x, y(length), box.x + box.w, y(length), { stroke: colors.ink, dash: [6, 4] });
    pen.text(`${name} = ${grouped(length)}`, box.x + 8, y(length) - 9, { size: 11 });
  }
  const styles = [
    { stroke: colors.soft, width: 1.6 },
    { stroke: colors.lines[0], width: 2, dash: [8, 3] },
    { stroke: colors.lines[2], width: 2, dash: [2, 3] },
    { stroke: colors.lines[1], width: 2.6 },
  ];
  Object.entries(found).forEach(([name, frequencies], s) => {
    pen.polyline(
      frequencies.flatMap((omega, i) => [x(i), y(wavelength(omega))]),
      styles[s],
    );
    const at = 24 + s * Math.min(120, (wide - 30) / 4);
    pen.line(at, height - 12, at + 28, height - 12, styles[s]);
    pen.text(name, at + 34, height - 12, { size: 12 });
  });
  return undefined;
}

function scalingData(state) {
  const found = schedulesOf(state);
  if (!found) return { columns: ["pair"], count: 1, row: () => [schedulesRefusal(state)] };
  const names = Object.keys(found);
  return {
    columns: ["pair", ...names.map((name) => `${name} wavelength`)],
    count: found.plain.length,
    row: (i) => [i, ...names.map((name) => wavelength(found[name][i]))],
    nearRow: Math.min(state.dimension >> 1, found.plain.length - 1),
  };
}
