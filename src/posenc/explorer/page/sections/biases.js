// Section 12: a bias, the scores after it, and what the softmax leaves.

import { chart, span } from "../draw/chart.js";
import { createButtons, createSelect } from "../interface/choices.js";
import { el, say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { running } from "../math/seen.js";
import { aboutKeysSeen, aboutKind, aboutLonger, aboutSeen } from "../prose/seen.js";
import { seenOf } from "../state/facts.js";

const NEEDS = [
  ...["biasKind", "heads", "head", "buckets", "kerpleP", "kerpleA", "window", "keys"],
];
const SAYS = { kind: aboutKind, seen: aboutSeen, equal: aboutKeysSeen, longer: aboutLonger };
const FIELDS = [
  ["keys", "Keys", "ratio", null],
  ["heads", "Heads", "difference", ["alibi"]],
  ["head", "Head h", "difference", ["alibi", "t5"]],
  ["kerpleP", "KERPLE p", "ratio", ["kerple"]],
  ["kerpleA", "KERPLE a", "ratio", ["kerple"]],
  ["window", "Window", "ratio", ["window"]],
];
const KINDS = [
  ["none", "none"],
  ["alibi", "ALiBi"],
  ["t5", "T5"],
  ["kerple", "KERPLE"],
  ["window", "window"],
];

/** Fills the section. */
export function createBiases(root, context) {
  const { store, scheduler } = context;
  const kinds = root.querySelector("[data-kinds]").appendChild(el("div"));
  createButtons(kinds, context, "biasKind", "Bias", KINDS);
  const fields = FIELDS.map(([name, words, by, kindsOfIt]) => ({
    ...createField(store, name, words, { by, id: `bias-${name}` }),
    kindsOfIt,
  }));
  const counts = ["8", "16", "32", "64"].map((count) => [count, count]);
  fields.push({ ...createSelect(store, "buckets", "T5 buckets", counts), kindsOfIt: ["t5"] });
  root.querySelector("[data-biases]").append(...fields.map(({ element }) => element));
  for (const figure of figures()) {
    createFigure(root.querySelector(`[data-figure="${figure.name}"]`), context, {
      ...{ needs: NEEDS, height: () => 250, data, keys },
      ...figure,
    });
  }
  scheduler.add(root, NEEDS, (state) => {
    for (const { element, update, kindsOfIt } of fields) {
      element.hidden = Boolean(kindsOfIt) && !kindsOfIt.includes(state.biasKind);
      update(state);
    }
    for (const [name, about] of Object.entries(SAYS)) {
      say(root.querySelector(`[data-live="${name}"]`), about(state));
    }
  });
}

/** Arrows go from one bias to the next. */
function keys(key, { biasKind }) {
  const names = KINDS.map(([name]) => name);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const at = Math.min(Math.max(names.indexOf(biasKind) + (step ?? 0), 0), names.length - 1);
  return step && { biasKind: names[at] };
}

const figures = () => [
  {
    name: "added",
    label: "The bias over the distance.",
    draw: (view) => draw(view, "bias", [["bias", seenOf(view.state).bias, 1]]),
  },
  {
    name: "after",
    label: "The score of every key after the bias.",
    draw: (view) => draw(view, "score + bias", [["score after the bias", seenOf(view.state).scores, 0]]),
  },
  {
    name: "weights",
    label: "The weight of every key after the softmax, with the bias and without.",
    draw: (view) => draw(view, "weight", pairOf(view.state, (w) => w)),
  },
  {
    name: "held",
    label: "How much of the weight the nearest keys hold, with the bias and without.",
    draw: (view) => draw(view, "weight of the nearest", pairOf(view.state, running), true),
  },
];

function pairOf(state, of) {
  const { weights, plain } = seenOf(state);
  const both = [["with the bias", of(weights), 0]];
  return state.biasKind === "none" ? both : [["without", of(plain), 3], ...both];
}

function draw(view, label, lists, whole = false) {
  const { state, colors } = view;
  const all = lists.flatMap(([, values]) => values).filter(Number.isFinite);
  const range = whole ? { low: 0, high: 1.02 } : span([...all, 0]);
  chart(view, {
    x: { low: 0, high: state.keys - 1, label: "distance query − key" },
    y: { ...range, label },
    gap: 52,
    lines: lists.map(([name, values, line], i) => ({
      name,
      points: values.flatMap((v, d) => (Number.isFinite(v) ? [d, v] : [])),
      style: { stroke: line === 3 ? colors.soft : colors.lines[line], width: i ? 1.8 : 1.2 },
    })),
  });
  return undefined;
}

function data(state) {
  const { bias, content, scores, weights, plain } = seenOf(state);
  return {
    columns: ["query − key", "content", "bias", "score", "weight", "weight without"],
    count: state.keys,
    row: (d) => [d, ...[content, bias, scores, weights, plain].map((list) => list[d])],
  };
}
