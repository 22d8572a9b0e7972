// Section 7: embedding + encoding = sum, for a sentence of the reader's own.

import { axes, linearScale, ticks } from "../draw/axes.js";
import { colorBar } from "../draw/heatmap.js";
import { panel } from "../draw/panel.js";
import { say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { fixed } from "../interface/numbers.js";
import { createSentence } from "../interface/sentence_field.js";
import { norm } from "../math/matrices.js";
import { aboutNorms, aboutScale, aboutStill } from "../prose/sentence.js";
import { SENTENCE_DIM } from "../state/defaults.js";
import { sumOf } from "../state/facts.js";

const NEEDS = ["sentence", "shuffle", "scaled", "base", "position", "dimension"];

/** Fills the section. */
export function createSentenceSection(root, context) {
  const { scheduler, store } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const host = (name) => root.querySelector(`[data-figure="${name}"]`);
  createSentence(
    root.querySelector("#sentence"),
    root.querySelector("#sentence-problem"),
    context,
    "sentence",
  );
  const click = (id, patch) =>
    root.querySelector(`#${id}`).addEventListener("click", () => store.set(patch(store.get())));
  click("shuffle", ({ shuffle }) => ({ shuffle: (shuffle % 999) + 1 }));
  click("unshuffle", () => ({ shuffle: 0 }));
  const scaled = root.querySelector("#scaled");
  scaled.addEventListener("change", () => store.set({ scaled: scaled.checked }));

  createFigure(host("sum"), context, {
    name: "sum",
    label: "Embedding, encoding and their sum, one row a token.",
    needs: NEEDS,
    height: (width, state) => (width < 620 ? 3 : 1) * (rowsHeight(state) + 66),
    draw: drawSum,
    data: sumData,
  });
  createFigure(host("norms"), context, {
    name: "norms",
    label: "Length of embedding and encoding of every token.",
    needs: NEEDS,
    height: (_, state) => 54 + 26 * sumOf(state).all.length,
    draw: drawNorms,
    data: normData,
  });
  scheduler.add(root, NEEDS, (state) => {
    scaled.checked = state.scaled;
    const shape = `[${sumOf(state).all.length}, ${SENTENCE_DIM}]`;
    say(live("shapes"), `embedding ${shape} + encoding ${shape} = sum ${shape}`);
    say(live("norms"), aboutNorms(state));
    say(live("still"), aboutStill(state));
    say(live("scale"), aboutScale(state));
  });
}

const rowsHeight = (state) => {
  const count = sumOf(state).all.length;
  return count * Math.min(Math.max(300 / count, 13), 27);
};

/** The end of the colors: beyond every number, with the factor √d or without. */
const limitOf = (state) =>
  Math.ceil(
    Math.max(
      ...sumOf({ ...state, scaled: true })
        .sum.flat()
        .map(Math.abs),
      1,
    ),
  );

function drawSum({ pen, state, width, colors }) {
  const { all, embeddings, encoding, sum } = sumOf(state);
  const stacked = width < 620;
  const h = rowsHeight(state);
  const names = all.map((word, i) => `${word.length > 9 ? `${word.slice(0, 8)}…` : word} ${i}`);
  const left = 84;
  const w = stacked ? width - left - 60 : (width - left - 112) / 3;
  const limit = limitOf(state);
  const scale = colors.signed(-limit, limit);
  const inside = state.position < all.length && state.dimension < SENTENCE_DIM;
  const marked = inside ? { row: state.position, column: state.dimension } : undefined;
  const columns = Array.from({ length: SENTENCE_DIM }, (_, j) => String(j));
  [
    ["embedding", embeddings],
    ["+  encoding", encoding],
    ["=  sum", sum],
  ].forEach(([title, values], i) => {
    panel(pen, colors, {
      x: left + (stacked ? 0 : i * (w + 22)),
      y: 38 + (stacked ? i * (h + 66) : 0),
      w,
      h,
      values,
      scale,
      title,
      columns,
      rows: stacked || !i ? names : [],
      digits: 1,
      marked,
    });
  });
  colorBar(pen, colors, width - 42, 38, Math.max(h, 60), scale, ticks(-limit, limit, 6));
  return undefined;
}

function sumData(state) {
  const { all, embeddings, encoding, sum } = sumOf(state);
  const columns = ["embedding", "encoding", "sum"].flatMap((name) =>
    Array.from({ length: SENTENCE_DIM }, (_, j) => `${name} ${j}`),
  );
  return {
    columns: ["token", ...columns],
    count: all.length,
    row: (t) => [all[t], ...embeddings[t], ...encoding[t], ...sum[t]],
    nearRow: Math.min(state.position, all.length - 1),
    nearColumn: Math.min(state.dimension, SENTENCE_DIM - 1),
  };
}

function drawNorms({ pen, state, width, height, colors }) {
  const { all, embeddings, encoding } = sumOf(state);
  const box = { x: 92, y: 8, w: width - 150, h: height - 54 };
  const most = Math.max(...embeddings.map(norm), ...encoding.map(norm));
  const x = linearScale(0, most, box.x, box.x + box.w);
  axes(pen, colors, box, {
    x: { at: x, marks: ticks(0, most, box.w / 90), label: "length of the vector", lines: true },
  });
  const bars = [
    ["E", embeddings, colors.lines[0]],
    ["PE", encoding, colors.lines[1]],
  ];
  all.forEach((word, t) => {
    const y = box.y + 26 * t;
    pen.text(word.length > 10 ? `${word.slice(0, 9)}…` : word, box.x - 8, y + 13, {
      align: "right",
      size: 12,
    });
    bars.forEach(([name, rows, fill], i) => {
      const long = x(norm(rows[t])) - box.x;
      pen.rect(box.x, y + 3 + 10 * i, long, 9, { fill });
      pen.text(`${name} ${fixed(norm(rows[t]), 2)}`, box.x + long + 5, y + 8 + 10 * i, {
        size: 10,
        fill: colors.soft,
      });
    });
  });
  return undefined;
}

function normData(state) {
  const { all, embeddings, encoding } = sumOf(state);
  return {
    columns: ["token", "embedding", "encoding"],
    count: all.length,
    row: (t) => [all[t], norm(embeddings[t]), norm(encoding[t])],
    nearRow: Math.min(state.position, all.length - 1),
  };
}
