// Section 10: two tokens, pair by pair.

import { createButtons } from "../interface/choices.js";
import { el, say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import {
  aboutBothPairings,
  aboutEnvelope,
  aboutKept,
  aboutPair,
  aboutPartial,
  aboutSum,
  aboutTremble,
} from "../prose/slowly.js";
import { createRotaryPairs } from "./rotary_pairs.js";
import { createRotaryScores } from "./rotary_scores.js";

const SAYS = {
  pair: aboutPair,
  sum: aboutSum,
  tremble: aboutTremble,
  envelope: aboutEnvelope,
  partial: aboutPartial,
  kept: aboutKept,
  pairings: aboutBothPairings,
};
export const NEEDS = [
  ...["base", "position", "offset", "pairing"],
  ...["rotaryPair", "turnedPairs", "rotaryFault"],
];

/** Fills the section. */
export function createSlowly(root, context) {
  const { store, scheduler } = context;
  const fields = [
    createField(store, "rotaryPair", "Pair i"),
    createField(store, "turnedPairs", "Pairs that turn"),
  ];
  root.querySelector("[data-slow]").append(...fields.map(({ element }) => element));
  const buttons = root.querySelector("[data-slow-buttons]");
  const moves = [
    ["Query back", ({ offset }) => ({ offset: offset - 1 })],
    ["Query on", ({ offset }) => ({ offset: offset + 1 })],
    ["Key back", ({ position, offset }) => position && { position: position - 1, offset: offset + 1 }],
    [
      "Key on",
      ({ position, offset, length }) =>
        position < length - 1 && { position: position + 1, offset: offset - 1 },
    ],
  ].map(([words, move]) =>
    el("button", { type: "button", on: { click: () => store.set(move(store.get()) || {}) } }, words),
  );
  buttons.append(
    el("div", { class: "buttons", role: "group", "aria-label": "Move a token" }, moves),
  );
  const host = () => buttons.appendChild(el("div"));
  createButtons(host(), context, "pairing", "Pairing of the head", [
    ["half", "half"],
    ["interleaved", "interleaved"],
  ]);
  createButtons(host(), context, "rotaryFault", "What is turned", [
    ["none", "queries and keys turned"],
    ["queries", "queries alone (a fault)"],
  ]);
  createRotaryPairs(root, context, NEEDS);
  createRotaryScores(root, context, NEEDS);
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    for (const [name, about] of Object.entries(SAYS)) {
      say(root.querySelector(`[data-live="${name}"]`), about(state));
    }
  });
}
