// Section 4: pairs as hands at their true angles, beside the binary counter.

import { panel } from "../draw/panel.js";
import { say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { fixed, grouped, significant } from "../interface/numbers.js";
import { playButton } from "../interface/player.js";
import { bit } from "../math/binary.js";
import { CONVENTIONS } from "../math/conventions.js";
import { frequency, wavelength } from "../math/sincos.js";
import { channelsOf } from "../state/facts.js";

const NEEDS = ["length", "dim", "base", "position", "convention"];
const HANDS = 8;
const ROWS = 16;
const TURN = 2 * Math.PI;

/** Fills the section. */
export function createClocks(root, context) {
  const { scheduler, player } = context;
  playButton(player, root.querySelector("[data-play]"), "position", "Play positions");
  createFigure(root.querySelector('[data-figure="clocks"]'), context, {
    name: "clocks",
    label: "Eight clock hands, one a pair, and under them the bits of the position.",
    needs: NEEDS,
    height: (width) => (width < 560 ? 330 : 205),
    draw: drawClocks,
    data: clockData,
  });
  createFigure(root.querySelector('[data-figure="counters"]'), context, {
    name: "counters",
    label: "Bits and cosines of sixteen positions side by side.",
    needs: NEEDS,
    height: (width) => (width < 560 ? 676 : 350),
    draw: drawCounters,
    data: counterData,
  });
  const live = root.querySelector("[data-live]");
  scheduler.add(root, NEEDS, (state) => say(live, aboutClocks(state)));
}

/** Up to eight frequencies, spread from the first to the last, with the channels they stand in. */
function hands({ convention, dim, base }) {
  const seen = new Map();
  channelsOf(convention, dim).forEach((channel, j) => {
    if (channel.kind !== "zero" && !seen.has(channel.top)) seen.set(channel.top, { channel, j });
  });
  const all = [...seen.values()];
  const count = Math.min(HANDS, all.length);
  return Array.from({ length: count }, (_, i) => {
    const { channel, j } = all[count > 1 ? Math.round((i * (all.length - 1)) / (count - 1)) : 0];
    return { j, omega: frequency(base, channel) };
  });
}

const number = ({ convention, position }) => position + CONVENTIONS[convention].first;

function drawClocks({ pen, state, width, colors }) {
  const shown = hands(state);
  const perRow = width < 560 ? 4 : HANDS;
  const pitch = width / perRow;
  const radius = Math.min(pitch * 0.4, 42);
  const angles = colors.angles(0, TURN);
  shown.forEach(({ j, omega }, i) => {
    const x = ((i % perRow) + 0.5) * pitch;
    const y = radius + 12 + Math.floor(i / perRow) * 165;
    face(pen, colors, angles, x, y, radius);
    const angle = number(state) * omega;
    const [tipX, tipY] = [x + radius * 0.86 * Math.sin(angle), y - radius * 0.86 * Math.cos(angle)];
    pen.line(x, y, tipX, tipY, { stroke: colors.ink, width: 2.2 });
    pen.circle(tipX, tipY, 4.5, {
      fill: angles.css(angle % TURN),
      stroke: colors.ink,
      width: 1.2,
    });
    pen.circle(x, y, 2.5, { fill: colors.ink });
    const under = y + radius + 16;
    pen.text(`j ${j}`, x, under, { align: "center", size: 12, weight: 600 });
    pen.text(`λ ${significant(wavelength(omega), 3)}`, x, under + 16, {
      align: "center",
      size: 11,
      fill: colors.soft,
    });
    const on = bit(state.position, i);
    pen.rect(x - 11, under + 28, 22, 22, {
      fill: on ? colors.ink : colors.ground,
      stroke: colors.soft,
    });
    pen.text(String(on), x, under + 39.5, {
      align: "center",
      size: 13,
      fill: on ? colors.ground : colors.ink,
    });
    pen.text(`bit ${i}`, x, under + 61, { align: "center", size: 11, fill: colors.soft });
  });
}

function face(pen, colors, angles, x, y, radius) {
  const parts = 48;
  for (let i = 0; i < parts; i++) {
    const [a, b] = [(i / parts) * TURN, ((i + 1.15) / parts) * TURN];
    const stroke = angles.css((i + 0.5) * (TURN / parts));
    pen.line(
      x + radius * Math.sin(a),
      y - radius * Math.cos(a),
      x + radius * Math.sin(b),
      y - radius * Math.cos(b),
      { stroke, width: 4 },
    );
  }
}

function clockData(state) {
  const shown = hands(state);
  return {
    columns: ["dimension", "wavelength", "angle in turns", "sine", "cosine", "bit"],
    count: shown.length,
    row: (i) => {
      const angle = number(state) * shown[i].omega;
      const turns = angle / TURN;
      return [
        shown[i].j,
        wavelength(shown[i].omega),
        turns - Math.floor(turns),
        Math.sin(angle),
        Math.cos(angle),
        bit(state.position, i),
      ];
    },
  };
}

function windowRows({ position, length }) {
  const count = Math.min(ROWS, length);
  const from = Math.min(Math.max(position - (count >> 1), 0), length - count);
  return Array.from({ length: count }, (_, i) => from + i);
}

function drawCounters({ pen, state, width, colors }) {
  const rows = windowRows(state);
  const shown = hands(state);
  const stacked = width < 560;
  const w = stacked ? width - 60 : (width - 130) / 2;
  const common = { h: 272, rows: rows.map(String), marked: { row: rows.indexOf(state.position) } };
  const first = CONVENTIONS[state.convention].first;
  panel(pen, colors, {
    ...common,
    x: 44,
    y: 34,
    w,
    title: "binary: bit b flips every 2ᵇ positions",
    values: rows.map((p) => shown.map((_, b) => bit(p, b))),
    scale: colors.sizes(0, 1),
    columns: shown.map((_, b) => `b${b}`),
    digits: 0,
  });
  panel(pen, colors, {
    ...common,
    x: stacked ? 44 : w + 108,
    y: stacked ? 372 : 34,
    w,
    title: "cosine of the eight hands",
    values: rows.map((p) => shown.map(({ omega }) => Math.cos((p + first) * omega))),
    scale: colors.signed(-1, 1),
    columns: shown.map(({ j }) => `j${j}`),
    digits: 1,
  });
}

function counterData(state) {
  const rows = windowRows(state);
  const shown = hands(state);
  const first = CONVENTIONS[state.convention].first;
  return {
    columns: [
      "position",
      ...shown.map((_, b) => `bit ${b}`),
      ...shown.map(({ j }) => `cosine of ${j}`),
    ],
    count: rows.length,
    row: (r) => [
      rows[r],
      ...shown.map((_, b) => bit(rows[r], b)),
      ...shown.map(({ omega }) => Math.cos((rows[r] + first) * omega)),
    ],
    nearRow: rows.indexOf(state.position),
  };
}

function aboutClocks(state) {
  const shown = hands(state);
  const [fast, slow] = [shown[0], shown.at(-1)];
  const turns = (omega) => significant((number(state) * omega) / TURN, 3);
  return (
    `At position ${grouped(state.position)} the fastest hand has made ${turns(fast.omega)} turns and ` +
    `the slowest ${turns(slow.omega)}. In binary: ${state.position.toString(2)}. The slowest cosine ` +
    `is ${fixed(Math.cos(number(state) * slow.omega))}.`
  );
}
