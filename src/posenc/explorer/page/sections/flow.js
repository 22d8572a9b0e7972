// One block of the encoder as a row of stages, each with its shape; the chosen one with its numbers.

import { below } from "../draw/axes.js";
import { colorBar } from "../draw/heatmap.js";
import { panel } from "../draw/panel.js";
import { el, say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { aboutStage } from "../prose/encoder.js";

const NEEDS = ["attended", "base", "scheme", "stage"];

const STAGES = {
  embeddings: ["embed", "Each word picks its vector, times √d."],
  encoding: ["encoding", "What the positions alone say."],
  sum: ["sum", "From here on a vector knows its place."],
  queries: ["Q", "What a token looks for, split among the heads."],
  keys: ["K", "What a token offers to be found by."],
  values: ["V", "What a token hands over."],
  scores: ["scores", "Q Kᵀ / √depth: how well each query meets each key."],
  weights: ["softmax", "Positive, and 1 in every row."],
  gathered: ["heads", "Each token gathers the values by its weights."],
  joined: ["concat", "The heads of a token side by side."],
  attended: ["project", "A last linear map mixes what the heads found."],
  summed: ["add", "What came in is added, so that nothing is lost."],
  normed: ["norm", "Every token to mean 0 and variance 1 over its features."],
  inner: ["widen", "Feed-forward: each token alone, to a wider vector."],
  activated: ["ReLU", "Negative numbers become 0."],
  fed: ["narrow", "And back to the width of the model."],
  summedAgain: ["add", "Again what came in is added."],
  output: ["norm", "One vector a token."],
};

/** What stands between a stage and the next where it is no arrow. */
const THEN = { embeddings: "+", encoding: "=", queries: "·", keys: "·", output: "" };

/** Fills this part of the section; run(state) gives { words, on }. */
export function createFlow(root, context, run) {
  const { store, scheduler } = context;
  const list = root.querySelector("[data-flow]");
  const live = root.querySelector('[data-live="stage"]');
  const buttons = Object.entries(STAGES).map(([name, [words]]) => {
    const shape = el("span", { class: "shape" });
    const button = el(
      "button",
      { type: "button", "data-stage": name, on: { click: () => store.set({ stage: name }) } },
      words,
      shape,
    );
    list.append(el("li", { "data-then": THEN[name] ?? "→" }, button));
    return { name, button, shape };
  });
  const chosen = ({ stage }) => (stage in STAGES ? stage : "scores");
  createFigure(root.querySelector('[data-figure="stage"]'), context, {
    name: "stage",
    label: "The numbers of the chosen stage, one panel a head.",
    needs: NEEDS,
    height: (width, state) => layout(width, run(state), chosen(state)).height,
    draw: (view) => drawStage(view, run(view.state), chosen(view.state)),
    data: (state) => stageData(run(state), chosen(state)),
    keys: (key, state) => {
      const names = Object.keys(STAGES);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
      return (
        step && {
          stage:
            names[Math.min(Math.max(names.indexOf(chosen(state)) + step, 0), names.length - 1)],
        }
      );
    },
  });
  scheduler.add(root, NEEDS, (state) => {
    const { on } = run(state);
    for (const { name, button, shape } of buttons) {
      button.setAttribute("aria-pressed", String(name === chosen(state)));
      say(shape, sizes(on[name]).join(" × "));
    }
    const [words, about] = STAGES[chosen(state)];
    say(live, `${words}, shape ${sizes(on[chosen(state)]).join(" × ")}. ${aboutStage(state, chosen(state)) ?? about}`);
  });
}

const sizes = (values) => (Array.isArray(values) ? [values.length, ...sizes(values[0])] : []);

/** A list of heads, also where there is but one matrix. */
const panels = (values) => (Array.isArray(values[0][0]) ? values : [values]);

function layout(width, { words, on }, stage) {
  const shown = panels(on[stage]);
  const stacked = width < 640 && shown.length > 1;
  const left = 66;
  const gap = 40;
  const across = stacked ? 1 : shown.length;
  const w = (width - left - 62 - gap * (across - 1)) / across;
  const square = shown[0].length === shown[0][0].length;
  const wide = square ? Math.min(w, Math.max(words.length * 40, 150)) : w;
  const h = square ? wide : Math.min(Math.max(words.length * 30, 90), 620);
  return { shown, stacked, left, gap, wide, h, height: (stacked ? shown.length : 1) * (h + 84) };
}

function drawStage({ pen, width, colors }, found, stage) {
  const { shown, stacked, left, gap, wide, h } = layout(width, found, stage);
  const { words } = found;
  const names = words.map((word) => (word.length > 7 ? `${word.slice(0, 6)}…` : word));
  const flat = shown.flat(2);
  const most = Math.max(...flat.map(Math.abs), 1e-12);
  const scale = stage === "weights" ? colors.sizes(0, most) : colors.signed(-most, most);
  const tokensAcross = stage === "scores" || stage === "weights";
  shown.forEach((values, i) => {
    panel(pen, colors, {
      x: left + (stacked ? 0 : i * (wide + gap)),
      y: 38 + (stacked ? i * (h + 84) : 0),
      w: wide,
      h,
      values,
      scale,
      title: shown.length > 1 ? `head ${i}` : STAGES[stage][0],
      rows: stacked || !i ? names : [],
      columns: tokensAcross ? names : values[0].map((_, c) => String(c)),
      digits: 2,
    });
  });
  const end = left + (stacked ? 1 : shown.length) * (wide + gap) - gap;
  const mark = below(most);
  const marks = stage === "weights" ? [0, mark] : [-mark, 0, mark];
  colorBar(pen, colors, end + 12, 38, h, scale, marks);
  return undefined;
}

function stageData({ words, on }, stage) {
  const shown = panels(on[stage]);
  const columns = shown.flatMap((values, h) =>
    values[0].map((_, c) => (shown.length > 1 ? `head ${h}: ${c}` : String(c))),
  );
  return {
    columns: ["token", ...columns],
    count: words.length,
    row: (t) => [`${words[t]} ${t}`, ...shown.flatMap((values) => values[t])],
  };
}
