// What may be asked for, and the words for what may not.

import { CONVENTIONS, refusal } from "../math/conventions.js";
import { SECTION_IDS } from "./defaults.js";

const whole = (low, high) => ({ kind: "whole", low: () => low, high: () => high });

export const LIMITS = {
  length: whole(2, 4096),
  dim: whole(2, 1024),
  base: { kind: "number", low: () => 1, high: () => 1e7 },
  position: { kind: "whole", low: () => 0, high: (s) => s.length - 1 },
  dimension: { kind: "whole", low: () => 0, high: (s) => s.dim - 1 },
  offset: { kind: "whole", low: (s) => 1 - s.length, high: (s) => s.length - 1 },
  speed: { kind: "number", low: () => 0.25, high: () => 10 },
  code: whole(0, 4),
  clockBase: { kind: "number", low: () => 1, high: () => 1e7 },
  shuffle: whole(0, 999),
  moved: whole(-100, 100),
  heads: whole(1, 32),
  head: { kind: "whole", low: () => 0, high: (s) => s.heads - 1 },
  factor: { kind: "number", low: () => 1, high: () => 64 },
  trained: whole(16, 131072),
  row: whole(0, 63),
  column: whole(0, 63),
  rotaryPair: whole(0, 7),
  turnedPairs: whole(1, 8),
  kerpleP: { kind: "number", low: () => 0.01, high: () => 10 },
  kerpleA: { kind: "number", low: () => 0.01, high: () => 10 },
  window: whole(1, 4096),
  decoderStep: whole(0, 11),
  pads: whole(0, 6),
  gridSize: whole(4, 24),
  gridHead: whole(0, 7),
  patchRow: { kind: "whole", low: () => 0, high: (s) => s.gridSize - 1 },
  patchColumn: { kind: "whole", low: () => 0, high: (s) => s.gridSize - 1 },
  keys: whole(64, 4096),
};

/** How a model is led to longer texts, and what the method is called. */
export const METHODS = {
  none: "no change",
  linear: "linear",
  ntk: "NTK",
  yarn: "YaRN",
  llama3: "Llama 3",
};

/** How order is told in section 9, and what each is called. */
export const SCHEMES = {
  none: "none",
  sinusoidal: "sinusoidal",
  learned: "learned",
  rotary: "rotary",
  alibi: "ALiBi",
  t5: "T5",
};

export const CHOICES = {
  convention: Object.keys(CONVENTIONS),
  dtype: ["float64", "float32", "bfloat16"],
  pairing: ["half", "interleaved"],
  reach: ["both", "past"],
  scheme: Object.keys(SCHEMES),
  rotaryFault: ["none", "queries"],
  method: Object.keys(METHODS),
  biasKind: ["none", "alibi", "t5", "kerple", "window"],
  layout: ["one", "packed"],
  decoderFault: ["none", "offset", "mask"],
  gridKind: ["flat", "sine", "axial", "mixed"],
  coordinates: ["own", "stretched"],
  present: ["", ...SECTION_IDS],
  buckets: ["8", "16", "32", "64"],
};

/** { value } of a field's text, or { problem } in words: what came, what is expected. */
export function read(name, text, state) {
  const { kind, low, high } = LIMITS[name];
  const [least, most] = [low(state), high(state)];
  const asked = String(text).trim().replace("−", "-");
  const number = asked === "" ? NaN : Number(asked);
  const kindName = kind === "whole" ? "a whole number" : "a number";
  const fits = Number.isFinite(number) && number >= least && number <= most;
  if (!fits || (kind === "whole" && !Number.isInteger(number))) {
    return { problem: `${asked || "Nothing"} is not ${kindName} from ${least} to ${most}.` };
  }
  const refused = name === "dim" && refusal(state.convention, number);
  return refused ? { problem: `Not dim ${number}: ${refused}.` } : { value: number };
}

/** Fields that keys and pointers move: held inside their limits, not refused. */
const CURSORS = [
  ...["position", "dimension", "offset", "head"],
  ...["rotaryPair", "decoderStep", "pads", "patchRow", "patchColumn"],
];

/** A state whose cursor stands inside its table, and whose convention has its width. */
export function settled(state) {
  const inside = { ...state };
  if (refusal(inside.convention, inside.dim)) {
    inside.dim = Math.max(inside.dim - (inside.dim % 2), CONVENTIONS[inside.convention].smallest);
  }
  for (const name of CURSORS) {
    const { low, high } = LIMITS[name];
    inside[name] = Math.min(Math.max(inside[name], low(inside)), high(inside));
  }
  inside.pins = [...new Set(inside.pins)].filter((j) => j < inside.dim);
  return inside;
}
