// The state as the part of a link after #, and back.

import { tokens } from "../math/sentences.js";
import { DEFAULTS, NAMES } from "./defaults.js";
import { CHOICES, LIMITS, read } from "./limits.js";
import { same } from "./store.js";

/** Only what differs from the defaults, so that links stay short. */
export function written(state) {
  const parts = NAMES.filter((name) => !same(state[name], DEFAULTS[name])).map(
    (name) => `${name}=${encodeURIComponent([state[name]].flat().join("."))}`,
  );
  return parts.length ? `#${parts.join("&")}` : "";
}

/** { state, ignored }: the defaults changed by a link; what cannot be is left out and named. */
export function parsed(hash) {
  const state = { ...DEFAULTS };
  const ignored = [];
  const given = new Map(
    hash
      .replace(/^#/, "")
      .split("&")
      .filter((part) => part.includes("="))
      .map((part) => part.split(/=(.*)/s).slice(0, 2).map(decoded)),
  );
  for (const name of given.keys()) if (!(name in DEFAULTS)) ignored.push(`${name}: no such field`);
  // In the order of the defaults: the length must be known before a position is judged by it.
  for (const name of NAMES) {
    if (!given.has(name)) continue;
    const { value, problem } = readField(name, given.get(name), {
      ...state,
      convention: given.get("convention") ?? state.convention,
    });
    if (problem) ignored.push(`${name}: ${problem}`);
    else state[name] = value;
  }
  return { state, ignored };
}

function readField(name, text, state) {
  if (name in CHOICES) {
    return CHOICES[name].includes(text) ? { value: text } : { problem: `${text} is no choice.` };
  }
  if (name in LIMITS) {
    const known = CHOICES.convention.includes(state.convention);
    return read(name, text, known ? state : { ...state, convention: DEFAULTS.convention });
  }
  if (name === "pins") {
    const pins = text ? text.split(".") : [];
    const fine = pins.length <= 6 && pins.every((j) => /^\d+$/.test(j) && Number(j) < state.dim);
    const problem = `${text} is no list of up to six dimensions from 0 to ${state.dim - 1}.`;
    return fine ? { value: pins.map(Number) } : { problem };
  }
  if (name === "scaled") {
    const known = text === "true" || text === "false";
    return known ? { value: text === "true" } : { problem: `${text} is neither true nor false.` };
  }
  return tokens(text).kept.length ? { value: text.slice(0, 4000) } : { problem: "no word is there." };
}

function decoded(text) {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return text;
  }
}
