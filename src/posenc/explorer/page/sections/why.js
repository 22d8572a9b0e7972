// Section 1: five ways to write a position down, and what is wrong with four of them.

import { axes, linearScale, ticks, wholeTicks } from "../draw/axes.js";
import { createButtons } from "../interface/choices.js";
import { say, table } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { fixed, power, significant } from "../interface/numbers.js";
import { codes, columnsOf } from "../math/ladder.js";
import { FAR, aboutCode, aboutOrder, answers, setting } from "../prose/why.js";

const NEEDS = ["length", "base", "offset", "code"];
/** Fills the section. */
export function createWhy(root, context) {
  const { scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  createButtons(
    root.querySelector("[data-buttons]"),
    context,
    "code",
    "Code",
    codes(1).map(({ name }, i) => [i, `${i + 1} ${name}`]),
  );
  createFigure(root.querySelector("[data-figure]"), context, {
    name: "code",
    label: "The chosen code over the position, one curve a number.",
    needs: ["length", "base", "code", "position"],
    height: () => 250,
    draw: drawCode,
    data: codeData,
    keys: (key, { code }) =>
      ({
        ArrowLeft: { code: Math.max(code - 1, 0) },
        ArrowRight: { code: Math.min(code + 1, 4) },
      })[key],
  });
  scheduler.add(root, NEEDS, (state) => {
    live("checks").replaceChildren(checks(state));
    say(live("code"), aboutCode(state));
  });
  scheduler.add(root, ["base"], (state) => say(live("order"), aboutOrder(state)));
}

function checks(state) {
  const { length, offset } = setting(state);
  const verdict = (fine, text) => `${fine ? "✓" : "✗"} ${text}`;
  const rows = codes(state.base).map((code, i) => {
    const { bound, nearest, drift, residual } = answers(state, i);
    return [
      `${i + 1} ${code.name}${i === state.code ? " ←" : ""}`,
      verdict(bound <= 1, significant(bound, 3)),
      verdict(
        nearest.distance >= FAR,
        `${significant(nearest.distance)} (${nearest.first}, ${nearest.second})`,
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

function drawCode({ pen, state, width, height, colors }) {
  const { length } = setting(state);
  const shown = Math.min(length, 60);
  const code = codes(state.base)[state.code];
  const columns = columnsOf(code, length).map((column) => column.slice(0, shown));
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
      return [x(p), y(code.numbers[c](p, length))];
    }).flat();
    pen.polyline(points, { stroke, width: 1.4, dash: c % 2 ? [5, 4] : [] });
    const fill = c % 2 ? colors.ground : stroke;
    if (box.w / shown < 6) return;
    column.forEach((v, p) => pen.circle(x(p), y(v), 2.2, { fill, stroke }));
  });
  if (state.position >= shown) return;
  const at = x(state.position);
  pen.line(at, box.y, at, box.y + box.h, { stroke: colors.soft, dash: [2, 3] });
}

function codeData(state) {
  const { length } = setting(state);
  const columns = columnsOf(codes(state.base)[state.code], length);
  return {
    columns: ["position", ...columns.map((_, c) => `number ${c}`)],
    count: length,
    row: (p) => [p, ...columns.map((column) => column[p])],
    nearRow: Math.min(state.position, length - 1),
  };
}
