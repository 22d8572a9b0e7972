// The softmax matrix without and with the encoding, and the arithmetic of one cell.

import { below } from "../draw/axes.js";
import { colorBar } from "../draw/heatmap.js";
import { panel } from "../draw/panel.js";
import { el, say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { enough, fixed, rounded } from "../interface/numbers.js";
import { aboutRepeated, aboutTwins } from "../prose/encoder.js";

const NEEDS = ["attended", "base", "scheme", "row", "column"];
const HEAD = 0;

/** Fills this part of the section; run(state) gives { words, off, on }. */
export function createAttention(root, context, run) {
  const { scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const cell = (state) => {
    const last = run(state).words.length - 1;
    return { row: Math.min(state.row, last), column: Math.min(state.column, last), last };
  };
  createFigure(root.querySelector('[data-figure="attention"]'), context, {
    name: "attention",
    label:
      "Attention weights of the first head with the encoding off and on, and their difference.",
    needs: NEEDS,
    height: (width, state) => {
      const side = layout(width, run(state).words.length).side;
      return (width < 640 ? 3 : 1) * (side + 92);
    },
    draw: (view) => drawAttention(view, run(view.state), cell(view.state)),
    data: (state) => attentionData(run(state), cell(state)),
    keys: (key, state) => {
      const { row, column, last } = cell(state);
      const to = (x) => Math.min(Math.max(x, 0), last);
      return {
        ArrowUp: { row: to(row - 1) },
        ArrowDown: { row: to(row + 1) },
        ArrowLeft: { column: to(column - 1) },
        ArrowRight: { column: to(column + 1) },
        Home: { column: 0 },
        End: { column: last },
      }[key];
    },
  });
  scheduler.add(root, NEEDS, (state) => {
    const found = run(state);
    live("arithmetic").replaceChildren(...arithmetic(found, cell(state)));
    say(live("repeated"), aboutRepeated(state));
    say(live("twins"), aboutTwins(state));
  });
}

function layout(width, count) {
  const stacked = width < 640;
  const left = 60;
  const side = stacked
    ? Math.min(width - left - 60, 330)
    : Math.min((width - left - 152) / 3, Math.max(count * 37, 200));
  return { stacked, left, side };
}

function drawAttention({ pen, width, colors }, { words, off, on }, { row, column, last }) {
  const { stacked, left, side } = layout(width, words.length);
  const [without, withIt] = [off.weights[HEAD], on.weights[HEAD]];
  const difference = withIt.map((line, r) => line.map((v, c) => v - without[r][c]));
  const most = Math.max(...without.flat(), ...withIt.flat());
  const most2 = Math.max(...difference.flat().map(Math.abs), 1e-12);
  const weights = colors.sizes(0, most);
  const signed = colors.signed(-most2, most2);
  const origin = (i) => ({
    x: left + (stacked ? 0 : i * (side + 26) + (i === 2 ? 34 : 0)),
    y: 40 + (stacked ? i * (side + 92) : 0),
  });
  const names = words.map((word) => (word.length > 6 ? `${word.slice(0, 5)}…` : word));
  const cells = [];
  [
    ["encoding off", without, weights],
    ["encoding on", withIt, weights],
    ["on − off", difference, signed],
  ].forEach(([title, values, scale], i) => {
    const { x, y } = origin(i);
    const size = panel(pen, colors, {
      x,
      y,
      w: side,
      h: side,
      values,
      scale,
      title,
      digits: 2,
      rows: stacked || i === 0 ? names : [],
      columns: names,
      marked: { row, column },
    });
    cells.push({ x, y, size });
  });
  const bar = origin(1);
  colorBar(pen, colors, bar.x + side + 8, bar.y, side, weights, [0, below(most)]);
  const second = origin(2);
  const mark = below(most2);
  colorBar(pen, colors, second.x + side + 8, second.y, side, signed, [-mark, 0, mark]);
  pen.text(`keys →, queries ↓, head ${HEAD}`, left, cells[0].y + side + 44, { size: 11, fill: colors.soft });
  return (x, y) => {
    const hit = cells.find((c) => x >= c.x && x < c.x + side && y >= c.y && y < c.y + side);
    if (!hit) return null;
    const at = (offset, size) => Math.min(Math.max(Math.floor(offset / size), 0), last);
    return { state: { row: at(y - hit.y, hit.size.h), column: at(x - hit.x, hit.size.w) } };
  };
}

function attentionData({ words, off, on }, { row, column }) {
  return {
    columns: [
      "query",
      ...["off", "on"].flatMap((side) => words.map((word, i) => `${side}: ${word} ${i}`)),
    ],
    count: words.length,
    row: (r) => [`${words[r]} ${r}`, ...off.weights[HEAD][r], ...on.weights[HEAD][r]],
    nearRow: row,
    nearColumn: column,
  };
}

/** Two short calculations, off and on: product, scale, softmax. */
function arithmetic({ words, off, on, bias }, { row, column }) {
  return [
    ["off", off],
    ["on", on],
  ].map(([name, stages]) => {
    const [q, k] = [stages.queries[HEAD][row], stages.keys[HEAD][column]];
    const products = q.map((v, i) => v * k[i]);
    const scores = stages.scores[HEAD][row];
    const sum = scores.reduce((all, s) => all + Math.exp(s), 0);
    const lines = workings({
      products,
      depth: q.length,
      added: name === "on" && bias ? bias(HEAD, row, column) : null,
      score: scores[column],
      sum,
      weight: stages.weights[HEAD][row][column],
    });
    return el(
      "div",
      { "data-cell": name },
      el(
        "h3",
        {},
        `Encoding ${name}: “${words[row]}” (${row}) looks at “${words[column]}” (${column})`,
      ),
      ...lines.map((line) => el("p", {}, line)),
    );
  });
}

/** Line by line, each with digits enough that its numbers give the one behind its sign. */
function workings({ products, depth, added, score, sum, weight }) {
  const raw = products.reduce((all, v) => all + v, 0);
  const [scaled, root] = [raw / Math.sqrt(depth), Math.sqrt(depth)];
  const last = enough((d) => fixed(Math.exp(rounded(score, d)) / rounded(sum, d)) === fixed(weight));
  const comesTo = (value, digits, of) =>
    enough((d) => fixed(of(d), digits) === fixed(value, digits), digits);
  const few =
    added === null ? last : comesTo(score, last, (d) => rounded(scaled, d) + rounded(added, d));
  const some = comesTo(scaled, few, (d) => rounded(raw, d) / root);
  const many = comesTo(raw, some, (d) => products.reduce((all, v) => all + rounded(v, d), 0));
  const listed = products.map((v) => fixed(v, many)).join(" + ").replaceAll("+ −", "− ");
  return [
    `q · k = ${listed} = ${fixed(raw, some)}`,
    `÷ √${depth} = ${fixed(scaled, few)}`,
    ...(added === null ? [] : [`+ bias ${fixed(added, few)} = ${fixed(score, last)}`]),
    `softmax: exp(${fixed(score, last)}) / ${fixed(sum, last)} = ${fixed(weight)}`,
  ];
}
