// What the page shows untouched. Every field is a choice of the reader and stands in the link.

export const DEFAULTS = {
  length: 50,
  dim: 128,
  base: 10000,
  position: 10,
  dimension: 0,
  offset: 10,
  convention: "paper",
  dtype: "float64",
  speed: 1,
  code: 4,
  clockBase: 16,
  pins: [8, 32],
  sentence: "The quick brown fox jumps over the lazy dog .",
  shuffle: 0,
  scaled: true,
  pairing: "half",
  moved: 7,
  heads: 8,
  head: 0,
  reach: "both",
  factor: 4,
  trained: 2048,
  attended: "your cat is a lovely cat",
  row: 1,
  column: 5,
  stage: "scores",
  scheme: "sinusoidal",
  rotaryPair: 3,
  turnedPairs: 8,
  rotaryFault: "none",
  method: "none",
  biasKind: "alibi",
  buckets: "32",
  kerpleP: 1,
  kerpleA: 1,
  window: 128,
  keys: 512,
  decoderStep: 7,
  pads: 0,
  layout: "one",
  decoderFault: "none",
  gridKind: "axial",
  gridSize: 14,
  gridHead: 0,
  coordinates: "own",
  patchRow: 5,
  patchColumn: 8,
  present: "",
};

export const NAMES = Object.keys(DEFAULTS);

/** Fixed sizes of the worked examples: small enough for every number to be seen. */
export const SENTENCE_DIM = 14;
export const MODEL = { dim: 16, heads: 2, inner: 64, seed: 2017 };
export const ROTARY = { dim: 8, seed: 2021 };
export const SLOW = { dim: 16, seed: 1729 };
export const CONTENT_SEED = 2022;
export const DECODER = { count: 12, prompt: 4, dim: 16 };
export const GRID_DIM = 64;

/** The sections, in order; `present` holds one of them while it alone is shown. */
export const SECTION_IDS = [
  ...["why", "matrix", "curves", "clocks", "similarity", "shift", "sentence-section"],
  ...["relatives", "encoder", "slowly", "long", "biases", "decoder", "grid", "exercises"],
];
