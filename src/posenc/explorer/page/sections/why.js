// Section 1: five ways to write a position down, and what is wrong with four of them.

import { axes, linearScale, ticks, wholeTicks } from "../draw/axes.js";
import { createButtons } from "../interface/choices.js";
import { say, table } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { fixed, power, significant } from "../interface/numbers.js";
import { orderEffect } from "../math/order.js";
import { columnsOf, questions, ways } from "../math/ladder.js";
import { MODEL } from "../state/defaults.js";

const NEEDS = ["length", "base", "offset", "way"];
const LESSONS = [
  "Counting is unbounded: far positions drown the embedding, and a length never trained on brings numbers never seen.",
  "Divided by the length it is bounded, but the same position has another code in a longer text, and neighbors come ever closer.",
  "One sine is bounded and the same at every length, but different positions nearly share a value, and no linear map moves it.",
  "With its cosine beside it a fixed offset is a rotation, whatever the position. Positions a whole number of turns apart still nearly meet.",
  "Many pairs of different wavelengths: bounded, the same at every length, movable, and far apart. This is the encoding.",
];

/** The length and the offset that the answers are for: long enough for all to mean something. */
const setting = ({ length, offset }) => {
  const shown = Math.min(Math.max(length, 24), 200);
  return { length: shown, offset: Math.min(Math.max(Math.abs(offset), 1), shown >> 1) };
};

/** Fills the section. */
export function createWhy(root, context) {
  const { scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  createButtons(
    root.querySelector("[data-buttons]"),
    context,
    "way",
    "Code",
    ways(1).map(({ name }, i) => [i, `${i + 1} ${name}`]),
  );
  createFigure(root.querySelector("[data-figure]"), context, {
    name: "way",
    label: "The chosen code over the position, one curve a number.",
    needs: [...NEEDS, "position"],
    height: () => 250,
    draw: drawWay,
    data: wayData,
    keys: (key, { way }) =>
      ({ ArrowLeft: { way: Math.max(way - 1, 0) }, ArrowRight: { way: Math.min(way + 1, 4) } })[
        key
      ],
  });
  scheduler.add(root, NEEDS, (state) => {
    live("checks").replaceChildren(checks(state));
    say(live("way"), LESSONS[state.way]);
  });
  scheduler.add(root, ["base"], ({ base }) => say(live("order"), aboutOrder(base)));
}

function aboutOrder(base) {
  const { without, with: told } = orderEffect(["lion", "kills", "tiger"], [2, 1, 0], base, MODEL);
  return (
    `Run through the encoder of section 9, the vector of a word differs between the two orders by ` +
    `${power(without)} without an encoding: rounding. With it, by ${significant(told, 3)}.`
  );
}

function checks(state) {
  const { length, offset } = setting(state);
  const verdict = (fine, text) => `${fine ? "✓" : "✗"} ${text}`;
  const rows = ways(state.base).map((way, i) => {
    const { bound, nearest, drift, residual } = questions(way, length, offset);
    return [
      `${i + 1} ${way.name}${i === state.way ? " ←" : ""}`,
      verdict(bound <= 1, significant(bound, 3)),
      verdict(
        nearest.distance >= 0.1,
        `${fixed(nearest.distance)} (${nearest.first}, ${nearest.second})`,
      ),
      verdict(drift === 0, drift ? fixed(drift, 2) : "none"),
      verdict(residual < 1e-9, residual < 1e-9 ? power(residual) : `${fixed(100 * residual, 1)} %`),
    ];
  });
  const head = [
    "code",
    "largest value",
    "closest two positions",
    "change at 2L",
    `left by the best map for k = ${offset}`,
  ];
  return table(
    `L = ${length}, k = ${offset}, n = ${state.base}. ✓ means: at most 1; at least 0.1 apart; no change; below 10⁻⁹.`,
    head,
    rows,
  );
}

function drawWay({ pen, state, width, height, colors }) {
  const { length } = setting(state);
  const shown = Math.min(length, 60);
  const way = ways(state.base)[state.way];
  const columns = columnsOf(way, length).map((column) => column.slice(0, shown));
  const most = Math.max(1, ...columns.flat());
  const least = Math.min(...columns.flat()) < 0 ? -1 : 0;
  const box = { x: 56, y: 14, w: width - 76, h: height - 62 };
  const x = linearScale(0, shown - 1, box.x, box.x + box.w);
  const y = linearScale(least, most, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: { at: x, marks: wholeTicks(0, shown - 1, width / 80), label: "position p" },
    y: { at: y, marks: ticks(least, most, 4), label: "value", lines: true },
  });
  columns.forEach((column, c) => {
    const stroke = colors.lines[(columns.length > 1 ? c >> 1 : c) % colors.lines.length];
    const points = Array.from({ length: Math.ceil(box.w / 2) + 1 }, (_, i) => {
      const p = Math.min((i * 2 * (shown - 1)) / box.w, shown - 1);
      return [x(p), y(way.numbers[c](p, length))];
    }).flat();
    pen.polyline(points, { stroke, width: 1.4, dash: c % 2 ? [5, 4] : [] });
    const fill = c % 2 ? colors.ground : stroke;
    if (box.w / shown < 6) return;
    column.forEach((v, p) => pen.circle(x(p), y(v), 2.2, { fill, stroke }));
  });
  const at = Math.min(state.position, shown - 1);
  pen.line(x(at), box.y, x(at), box.y + box.h, { stroke: colors.soft, dash: [2, 3] });
}

function wayData(state) {
  const { length } = setting(state);
  const columns = columnsOf(ways(state.base)[state.way], length);
  return {
    columns: ["position", ...columns.map((_, c) => `number ${c}`)],
    count: length,
    row: (p) => [p, ...columns.map((column) => column[p])],
    nearRow: Math.min(state.position, length - 1),
  };
}
