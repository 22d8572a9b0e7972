// The pairs of a head as clocks, the sum of what they add, and the channels that they are made of.

import { span } from "../draw/chart.js";
import { axes, linearScale, ticks } from "../draw/axes.js";
import { createFigure } from "../interface/figure.js";
import { fixed, significant } from "../interface/numbers.js";
import { part, pairsOf } from "../math/rotary_pairs.js";
import { wavelength } from "../math/sincos.js";
import { SLOW_KEY, SLOW_QUERY, slowPairsOf } from "../state/facts.js";

const placed = (state) => {
  const [n, alone] = [state.position, state.rotaryFault === "queries"];
  const m = n + state.offset;
  return slowPairsOf(state).map((pair) => ({
    ...pair,
    adds: part(pair, m, n, alone),
    angles: [pair.query + m * pair.omega, pair.key + (alone ? 0 : n) * pair.omega],
  }));
};

const keys = (key, { rotaryPair, offset }) =>
  ({
    ArrowLeft: { rotaryPair: rotaryPair - 1 },
    ArrowRight: { rotaryPair: rotaryPair + 1 },
    ArrowUp: { offset: offset + 1 },
    ArrowDown: { offset: offset - 1 },
  })[key];

/** Fills this part of the section. */
export function createRotaryPairs(root, context, needs) {
  const figure = (name, label, height, draw, data, own = needs) =>
    createFigure(root.querySelector(`[data-figure="${name}"]`), context, {
      ...{ name, label, needs: own, height, draw, data, keys },
    });
  figure(
    "rotary-pairs",
    "Eight pairs of query and key as arrows, each with what it adds to the score.",
    (width) => (8 / across(width)) * (pitch(width) + 50) + 26,
    drawPairs,
    pairsData,
  );
  figure("rotary-sum", "The parts of the pairs, stacked to the score.", () => 230, drawSum, pairsData);
  figure(
    "rotary-layout",
    "The sixteen channels and the pair of each, in halves and interleaved.",
    () => 128,
    drawLayout,
    layoutData,
    ["pairing", "rotaryPair", "turnedPairs"],
  );
}

const across = (width) => (width < 560 ? 4 : 8);
const pitch = (width) => Math.min(width / across(width), 110);

function drawPairs({ pen, state, width, colors }) {
  const [perRow, wide] = [across(width), width / across(width)];
  const radius = pitch(width) * 0.4;
  const all = placed(state);
  const tall = pitch(width) + 50;
  all.forEach(({ channels, angles, adds, omega, turns }, i) => {
    const [x, y] = [((i % perRow) + 0.5) * wide, Math.floor(i / perRow) * tall + radius + 24];
    const chosen = i === state.rotaryPair;
    pen.circle(x, y, radius, { stroke: chosen ? colors.ink : colors.faint, width: chosen ? 2 : 1 });
    angles.forEach((angle, side) => {
      const [tipX, tipY] = [x + radius * 0.88 * Math.cos(angle), y - radius * 0.88 * Math.sin(angle)];
      const style = { stroke: colors.lines[side], width: 2, dash: side ? [5, 3] : [] };
      pen.line(x, y, tipX, tipY, style);
      pen.circle(tipX, tipY, 3.5, { fill: colors.lines[side] });
    });
    const label = (text, at, style) => pen.text(text, x, at, { align: "center", size: 11, ...style });
    label(channels.join(", "), y - radius - 11, { fill: colors.soft });
    label(fixed(adds, 2), y + radius + 14, { size: 12, weight: 600 });
    label(turns ? `λ ${significant(wavelength(omega), 3)}` : "still", y + radius + 30, {
      fill: colors.soft,
    });
  });
  const foot = (8 / perRow) * tall + 12;
  pen.line(12, foot, 36, foot, { stroke: colors.lines[0], width: 2 });
  pen.text("query", 42, foot, { size: 11 });
  pen.line(92, foot, 116, foot, { stroke: colors.lines[1], width: 2, dash: [5, 3] });
  pen.text("key", 122, foot, { size: 11 });
  return (px, py) => {
    const i = Math.floor(py / tall) * perRow + Math.floor(px / wide);
    return i >= 0 && i < all.length ? { state: { rotaryPair: i } } : null;
  };
}

function drawSum({ pen, state, width, height, colors }) {
  const all = placed(state);
  const sums = [0];
  for (const { adds } of all) sums.push(sums.at(-1) + adds);
  const { low, high } = span(sums);
  const box = { x: 60, y: 14, w: width - 74, h: height - 62 };
  const x = linearScale(-0.5, all.length + 0.5, box.x, box.x + box.w);
  const y = linearScale(low, high, box.y + box.h, box.y);
  const names = (i) => (i === all.length ? "score" : String(i));
  axes(pen, colors, box, {
    x: { at: x, marks: sums.map((_, i) => i), label: "pair i", name: names },
    y: { at: y, marks: ticks(low, high, 5), label: "parts added up", lines: true },
  });
  const wide = Math.min((box.w / sums.length) * 0.7, 44);
  const bar = (i, from, to, style) =>
    pen.rect(x(i) - wide / 2, Math.min(y(from), y(to)), wide, Math.abs(y(from) - y(to)) || 1, style);
  all.forEach(({ adds }, i) =>
    bar(i, sums[i], sums[i + 1], {
      fill: colors.lines[adds < 0 ? 1 : 0],
      ...(i === state.rotaryPair ? { stroke: colors.ink, width: 2 } : {}),
    }),
  );
  bar(all.length, 0, sums.at(-1), { fill: colors.soft });
  pen.line(box.x, y(0), box.x + box.w, y(0), { stroke: colors.ink });
  return (px) => ({
    state: { rotaryPair: Math.round(((px - box.x) / box.w) * (all.length + 1) - 0.5) },
  });
}

function pairsData(state) {
  return {
    columns: ["pair", "first channel", "second channel", "radians a position", "size", "part"],
    count: 8,
    row: (i) => {
      const { channels, omega, size, adds } = placed(state)[i];
      return [i, ...channels, omega, size, adds];
    },
    nearRow: state.rotaryPair,
  };
}

/** The pair of every channel, or none. */
function owners(state, pairing) {
  const how = { turned: state.turnedPairs, base: state.base, pairing };
  const found = new Array(SLOW_QUERY.length).fill(null);
  pairsOf(SLOW_QUERY, SLOW_KEY, how).forEach(({ channels, turns }, i) => {
    for (const channel of channels) if (turns) found[channel] = i;
  });
  return found;
}

function drawLayout({ pen, state, width, colors }) {
  const left = 84;
  const cell = Math.min((width - left - 12) / 16, 44);
  ["half", "interleaved"].forEach((pairing, row) => {
    const y = 12 + row * 42;
    const weight = pairing === state.pairing ? 700 : 400;
    pen.text(pairing, left - 8, y + 15, { align: "right", size: 12, weight });
    owners(state, pairing).forEach((owner, channel) => {
      const chosen = owner === state.rotaryPair;
      pen.rect(left + channel * cell, y, cell - 2, 30, {
        fill: chosen ? colors.ink : owner === null ? colors.ground : colors.faint,
        stroke: colors.soft,
      });
      pen.text(owner === null ? "–" : String(owner), left + (channel + 0.5) * cell - 1, y + 15.5, {
        ...{ align: "center", size: 12, fill: chosen ? colors.ground : colors.ink },
      });
    });
  });
  for (let c = 0; c < 16; c += cell < 18 ? 3 : 1) {
    const x = left + (c + 0.5) * cell - 1;
    pen.text(String(c), x, 98, { align: "center", size: 11, fill: colors.soft });
  }
  pen.text("channel; in the cell its pair", left, 116, { size: 11, fill: colors.soft });
  return undefined;
}

function layoutData(state) {
  const [half, interleaved] = ["half", "interleaved"].map((pairing) => owners(state, pairing));
  const told = (owner) => (owner === null ? "still" : owner);
  return {
    columns: ["channel", "pair in halves", "pair interleaved"],
    count: half.length,
    row: (c) => [c, told(half[c]), told(interleaved[c])],
  };
}
