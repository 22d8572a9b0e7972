// Section 13: mask, cache, one step at a time, pads on the left, two packed documents.

import { axes, linearScale, ticks } from "../draw/axes.js";
import { mark } from "../draw/heatmap.js";
import { createButtons } from "../interface/choices.js";
import { el, say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { hidden } from "../math/decoder.js";
import {
  aboutCache,
  aboutFault,
  aboutMask,
  aboutPads,
  aboutPlace,
  decoderOf,
} from "../prose/decoder.js";
import { DECODER } from "../state/defaults.js";

const MASK_NEEDS = ["decoderStep", "pads", "layout", "decoderFault"];
const NEEDS = [...MASK_NEEDS, "base"];
const SAYS = {
  place: aboutPlace,
  mask: aboutMask,
  cache: aboutCache,
  fault: aboutFault,
  pads: aboutPads,
};

/** Fills the section. */
export function createDecoder(root, context) {
  const { store, scheduler } = context;
  const fields = [
    createField(store, "decoderStep", "Token of this step"),
    createField(store, "pads", "Pads on the left"),
  ];
  const step = (by) => () => store.set({ decoderStep: store.get().decoderStep + by });
  const steps = [
    ["Step back", -1],
    ["Next token", 1],
  ].map(([words, by]) => el("button", { type: "button", on: { click: step(by) } }, words));
  root.querySelector("[data-decoder]").append(
    ...fields.map(({ element }) => element),
    el("div", { class: "buttons", role: "group", "aria-label": "Decoding" }, steps),
  );
  const choices = root.querySelector("[data-decoder-choices]");
  const host = () => choices.appendChild(el("div"));
  createButtons(host(), context, "layout", "Documents", [
    ["one", "one document"],
    ["packed", "two packed"],
  ]);
  createButtons(host(), context, "decoderFault", "What is forgotten", [
    ["none", "nothing forgotten"],
    ["offset", "the offset"],
    ["mask", "all masks but the causal"],
  ]);
  createFigure(root.querySelector('[data-figure="mask"]'), context, {
    ...{ name: "mask", needs: MASK_NEEDS, keys, draw: drawMask, data: maskData },
    label: "Queries down, keys across: the distance where a query sees a key, else why it does not.",
    height: (width, state) => layoutOf(width, state).side + 84,
  });
  createFigure(root.querySelector('[data-figure="step"]'), context, {
    ...{ name: "step", needs: NEEDS, keys, height: () => 250, draw: drawStep, data: stepData },
    label: "The weights of this step, right and as shown.",
  });
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    for (const [name, about] of Object.entries(SAYS)) {
      say(root.querySelector(`[data-live="${name}"]`), about(state));
    }
  });
}

const keys = (key, { decoderStep, pads }) =>
  ({
    ArrowDown: { decoderStep: decoderStep + 1 },
    ArrowUp: { decoderStep: decoderStep - 1 },
    ArrowRight: { pads: pads + 1 },
    ArrowLeft: { pads: pads - 1 },
    Home: { decoderStep: 0 },
    End: { decoderStep: DECODER.count - 1 },
  })[key];

const nameOf = ({ pad, token, document }, packed) =>
  pad ? "pad" : packed ? `${"AB"[document]}${token}` : String(token);

function layoutOf(width, state) {
  const count = DECODER.count + state.pads;
  const left = 52;
  return { left, side: Math.min(width - left - 12, count * 40), count };
}

const SIGNS = { after: "", pad: "p", document: "×" };

function drawMask({ pen, state, width, colors }) {
  const { left, side, count } = layoutOf(width, state);
  const { all, row, shown } = decoderOf(state);
  const cell = side / count;
  const top = 40;
  const small = { align: "center", size: cell < 22 ? 9 : 11 };
  const packed = state.layout === "packed";
  all.forEach((column, i) => {
    const middle = left + (i + 0.5) * cell;
    pen.text(nameOf(column, packed), middle, top - 24, { ...small, fill: colors.soft });
    const position = column.pad ? "–" : String(shown.places[i]);
    pen.text(position, middle, top - 9, { ...small, weight: 600 });
    pen.text(nameOf(column, packed), left - 8, top + (i + 0.5) * cell, {
      ...small,
      align: "right",
      fill: i === row ? colors.ink : colors.soft,
      weight: i === row ? 700 : 400,
    });
  });
  for (let q = 0; q < count; q++) {
    for (let k = 0; k < count; k++) {
      const reason = hidden(all, q, k, state.decoderFault);
      const done = q <= row;
      const cached = done && !reason;
      const fill = cached ? (q === row ? colors.lines[0] : colors.faint) : colors.ground;
      pen.rect(left + k * cell, top + q * cell, cell - 1, cell - 1, { fill, stroke: colors.faint });
      const told = reason ? SIGNS[reason] : String(shown.places[q] - shown.places[k]).replace("-", "−");
      const ink = cached && q === row ? colors.ground : done ? colors.ink : colors.soft;
      if (told) pen.text(told, left + (k + 0.5) * cell, top + (q + 0.5) * cell, { ...small, fill: ink });
    }
  }
  mark(pen, colors, left, top + row * cell, (row + 1) * cell, cell);
  const foot = top + side + 18;
  pen.text("above: token and position; in a cell: query − key", left, foot, {
    ...{ size: 11, fill: colors.soft },
  });
  pen.text("p: pad  ·  ×: other document  ·  framed: this step", left, foot + 16, {
    ...{ size: 11, fill: colors.soft },
  });
  return (_, y) => ({ state: { decoderStep: Math.floor((y - top) / cell) - state.pads } });
}

function drawStep({ pen, state, width, height, colors }) {
  const { all, right, shown } = decoderOf(state);
  const high = Math.max(...right.weights, ...shown.weights) * 1.05;
  const box = { x: 62, y: 14, w: width - 76, h: height - 84 };
  const x = linearScale(-0.5, all.length - 0.5, box.x, box.x + box.w);
  const y = linearScale(0, high, box.y + box.h, box.y);
  const packed = state.layout === "packed";
  axes(pen, colors, box, {
    x: {
      ...{ at: x, marks: all.map((_, i) => i), label: "key" },
      name: (i) => nameOf(all[i], packed),
    },
    y: { at: y, marks: ticks(0, high, 4), label: "weight", lines: true },
  });
  const wide = Math.min((box.w / all.length) * 0.36, 16);
  all.forEach((_, i) => {
    [right.weights, shown.weights].forEach((weights, side) => {
      const tall = box.y + box.h - y(weights[i]);
      const at = x(i) + (side - 1) * wide;
      pen.rect(at, y(weights[i]), wide - 1, tall, { fill: side ? colors.lines[1] : colors.lines[0] });
    });
  });
  ["whole pass, nothing forgotten", "this step as chosen"].forEach((words, i) => {
    const at = 12 + i * Math.min(width / 2, 230);
    pen.rect(at, height - 18, 12, 10, { fill: colors.lines[i] });
    pen.text(words, at + 18, height - 12, { size: width < 420 ? 10 : 12 });
  });
  return undefined;
}

function maskData(state) {
  const { all, row, shown } = decoderOf(state);
  const names = all.map((column) => nameOf(column, state.layout === "packed"));
  const told = (q, k) => hidden(all, q, k, state.decoderFault) || shown.places[q] - shown.places[k];
  return {
    columns: ["query", ...names.map((name, i) => `key ${i}: ${name}`)],
    count: all.length,
    row: (q) => [`${q}: ${names[q]}`, ...all.map((_, k) => told(q, k))],
    nearRow: row,
    nearColumn: row,
  };
}

function stepData(state) {
  const { all, row, right, shown } = decoderOf(state);
  return {
    columns: ["column", "token", "position", "right weight", "weight shown"],
    count: all.length,
    row: (i) => [
      ...[i, all[i].pad ? "pad" : all[i].token, shown.places[i]],
      ...[right.weights[i], shown.weights[i]],
    ],
    nearRow: row,
  };
}
