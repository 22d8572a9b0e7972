// Section 4: pairs as hands at their true angles, beside the binary counter.

import { panel } from "../draw/panel.js";
import { say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { significant } from "../interface/numbers.js";
import { playButton } from "../interface/player.js";
import { bit } from "../math/binary.js";
import { wavelength } from "../math/sincos.js";
import { aboutClocks, aboutHands, hands } from "../prose/clocks.js";

const NEEDS = ["length", "clockBase", "position"];
const ROWS = 16;
const TURN = 2 * Math.PI;

/** Fills the section. */
export function createClocks(root, context) {
  const { scheduler, player, store } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  playButton(player, root.querySelector("[data-play]"), "position", "Play positions");
  const base = createField(store, "clockBase", "Base of these clocks", { by: "ratio" });
  root.querySelector("[data-clock-base]").prepend(base.element);
  createFigure(root.querySelector('[data-figure="clocks"]'), context, {
    name: "clocks",
    label: "Four clock hands, one a pair, and under them the bits of the position.",
    needs: NEEDS,
    height: (width) => 2 * radiusOf(width) + 102,
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
  scheduler.add(root, NEEDS, (state) => {
    base.update(state);
    say(live("hands"), aboutHands(state));
    say(live("clocks"), aboutClocks(state));
  });
}

const radiusOf = (width) => Math.min((width / 4) * 0.42, 62);

function drawClocks({ pen, state, width, colors }) {
  const shown = hands(state);
  const pitch = width / shown.length;
  const radius = radiusOf(width);
  const angles = colors.angles(0, TURN);
  shown.forEach((omega, i) => {
    const [x, y] = [(i + 0.5) * pitch, radius + 12];
    face(pen, colors, angles, x, y, radius);
    const angle = state.position * omega;
    const [tipX, tipY] = [x + radius * 0.86 * Math.sin(angle), y - radius * 0.86 * Math.cos(angle)];
    pen.line(x, y, tipX, tipY, { stroke: colors.ink, width: 2.2 });
    pen.circle(tipX, tipY, 4.5, {
      fill: angles.css(angle % TURN),
      stroke: colors.ink,
      width: 1.2,
    });
    pen.circle(x, y, 2.5, { fill: colors.ink });
    const under = y + radius + 16;
    pen.text(`pair ${i}`, x, under, { align: "center", size: 12, weight: 600 });
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
    columns: ["pair", "wavelength", "angle in turns", "sine", "cosine", "bit"],
    count: shown.length,
    row: (i) => {
      const angle = state.position * shown[i];
      const turns = angle / TURN;
      return [
        i,
        wavelength(shown[i]),
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
  panel(pen, colors, {
    ...common,
    x: 44,
    y: 34,
    w,
    title: "binary: bit b flips every 2ᵇ positions",
    values: rows.map((p) => shown.map((_, b) => bit(p, b))),
    scale: colors.sizes(0, 1),
    columns: shown.map((_, b) => `bit ${b}`),
    digits: 0,
  });
  panel(pen, colors, {
    ...common,
    x: stacked ? 44 : w + 108,
    y: stacked ? 372 : 34,
    w,
    title: "cosine of the four hands",
    values: rows.map((p) => shown.map((omega) => Math.cos(p * omega))),
    scale: colors.signed(-1, 1),
    columns: shown.map((_, i) => `pair ${i}`),
    digits: 1,
  });
}

function counterData(state) {
  const rows = windowRows(state);
  const shown = hands(state);
  return {
    columns: [
      "position",
      ...shown.map((_, b) => `bit ${b}`),
      ...shown.map((_, i) => `cosine of pair ${i}`),
    ],
    count: rows.length,
    row: (r) => [
      rows[r],
      ...shown.map((_, b) => bit(rows[r], b)),
      ...shown.map((omega) => Math.cos(rows[r] * omega)),
    ],
    nearRow: rows.indexOf(state.position),
  };
}
