// Rotary: a query and a key, turned by their positions, before and after moving both.

import { createButtons } from "../interface/choices.js";
import { say, table } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { fixed, significant, whole } from "../interface/numbers.js";
import { channelsOf } from "../math/rotary.js";
import { geometric } from "../math/scaling.js";
import { dot } from "../math/similarity.js";
import { wavelength } from "../math/sincos.js";
import { aboutPairing, aboutRotary } from "../prose/relatives.js";
import { ROTARY } from "../state/defaults.js";
import { KEY, QUERY, rotaryStagesOf } from "../state/facts.js";

const NEEDS = ["base", "position", "offset", "moved", "pairing"];
const { dim } = ROTARY;

/** Fills this part of the section. */
export function createRotary(root, context) {
  const { store, scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const controls = root.querySelector("[data-rotary]");
  const buttons = controls.appendChild(document.createElement("div"));
  createButtons(buttons, context, "pairing", "Pairing", [
    ["half", "half"],
    ["interleaved", "interleaved"],
  ]);
  const moved = createField(store, "moved", "Move both by t");
  controls.append(moved.element);
  createFigure(root.querySelector('[data-figure="rotary"]'), context, {
    name: "rotary",
    label: "Query and key pair by pair: as they are, turned, and turned after moving both.",
    needs: NEEDS,
    height: (width) => (width < 560 ? 400 : 250),
    draw: drawRotary,
    data: rotaryData,
    keys: (key, state) =>
      ({ ArrowLeft: { moved: state.moved - 1 }, ArrowRight: { moved: state.moved + 1 } })[key],
  });
  scheduler.add(root, NEEDS, (state) => {
    moved.update(state);
    live("scores").replaceChildren(scores(state));
    say(live("rotary"), aboutRotary(state));
    say(live("pairing"), aboutPairing(state));
  });
}

const PAIRS = Array.from({ length: dim / 2 }, (_, i) => i);

const pairProduct = ({ q, k }, i, pairing) =>
  channelsOf(i, dim, pairing).reduce((sum, c) => sum + q[c] * k[c], 0);

/** A stage by its name, and by where query and key stand. */
const named = ({ name, m, n }) => (m === null ? name : `m = ${whole(m)}, n = ${whole(n)}`);

function drawRotary({ pen, state, width, colors }) {
  const perRow = width < 560 ? 2 : 4;
  const pitch = width / perRow;
  const radius = Math.min(pitch * 0.4, 78);
  const [plain, turned, moved] = rotaryStagesOf(state);
  const longest = Math.max(
    ...PAIRS.flatMap((i) => {
      const [a, b] = channelsOf(i, dim, state.pairing);
      return [Math.hypot(QUERY[a], QUERY[b]), Math.hypot(KEY[a], KEY[b])];
    }),
  );
  PAIRS.forEach((i) => {
    const [x, y] = [
      ((i % perRow) + 0.5) * pitch,
      radius + 34 + Math.floor(i / perRow) * (2 * radius + 50),
    ];
    const [a, b] = channelsOf(i, dim, state.pairing);
    pen.circle(x, y, radius, { stroke: colors.faint });
    const arrow = (v, stroke, style) => {
      const [tipX, tipY] = [x + (v[a] / longest) * radius, y - (v[b] / longest) * radius];
      pen.line(x, y, tipX, tipY, { stroke, ...style });
      pen.circle(tipX, tipY, style.width + 1.5, { fill: stroke });
    };
    for (const [side, stroke] of [
      ["q", colors.lines[0]],
      ["k", colors.lines[1]],
    ]) {
      arrow(plain[side], stroke, { width: 1, dash: [2, 3] });
      arrow(turned[side], stroke, { width: 1.6 });
      arrow(moved[side], stroke, { width: 3 });
    }
    const lambda = significant(wavelength(geometric(dim, state.base)[i]), 3);
    pen.text(`channels ${a}, ${b}`, x, 10 + y - radius - 30, {
      align: "center",
      size: 12,
      weight: 600,
    });
    pen.text(`λ ${lambda}`, x, y + radius + 14, { align: "center", size: 11, fill: colors.soft });
  });
  const last = perRow === 4 ? 2 * radius + 76 : 4 * radius + 126;
  const legend = ["dotted: as they are", "thin: turned", "thick: both moved on"];
  pen.circle(16, last, 4, { fill: colors.lines[0] });
  pen.text("query", 26, last, { size: 11 });
  pen.circle(72, last, 4, { fill: colors.lines[1] });
  pen.text(width < 560 ? "key" : `key  ·  ${legend.join("  ·  ")}`, 82, last, { size: 11 });
  if (width < 560) pen.text(legend.join(" · "), 12, last + 18, { size: 11 });
}

function rotaryData(state) {
  const all = rotaryStagesOf(state);
  return {
    columns: ["stage", ...PAIRS.map((i) => `pair ${i}`), "score q · k"],
    count: all.length,
    row: (r) => [
      named(all[r]),
      ...PAIRS.map((i) => pairProduct(all[r], i, state.pairing)),
      dot(all[r].q, all[r].k),
    ],
  };
}

/** The same, upright: three columns fit a phone where six do not. */
function scores(state) {
  const all = rotaryStagesOf(state);
  const rows = [
    ...PAIRS.map((i) => [`pair ${i}`, ...all.map((stage) => pairProduct(stage, i, state.pairing))]),
    ["score q · k", ...all.map(({ q, k }) => dot(q, k))],
  ];
  return table(
    "The score is the sum over the pairs; the query stands at m, the key at n.",
    ["", ...all.map(named)],
    rows.map(([name, ...numbers]) => [name, ...numbers.map((x) => fixed(x))]),
  );
}
