// What stands below a saved picture: the version, and the parameters that it was drawn from.

import { NAMES } from "../state/defaults.js";
import { whole } from "./numbers.js";

const LABELS = {
  ...{ length: "L", dim: "d", base: "n", position: "p", dimension: "j", offset: "k" },
  ...{ convention: "", dtype: "", code: "code", clockBase: "n", pins: "pins" },
  ...{ sentence: "", shuffle: "shuffle", scaled: "scaled", pairing: "pairing", moved: "t" },
  ...{ heads: "heads", head: "head", reach: "keys", factor: "s", trained: "L₀" },
  ...{ attended: "", row: "row", column: "column", stage: "stage", scheme: "scheme" },
  ...{ rotaryPair: "i", turnedPairs: "pairs that turn", rotaryFault: "fault" },
  ...{ method: "method", biasKind: "bias", buckets: "buckets", kerpleP: "KERPLE p" },
  ...{ kerpleA: "KERPLE a", window: "window", keys: "keys", decoderStep: "step", pads: "pads" },
  ...{ layout: "documents", decoderFault: "fault", gridKind: "encoding" },
  ...{ gridSize: "patches a side", gridHead: "head", coordinates: "coordinates" },
  ...{ patchRow: "row", patchColumn: "column" },
};

/** Fields that count for some choices of others alone. */
const OF_CHOICE = {
  base: { scheme: ["sinusoidal", "rotary"], code: [4] },
  heads: { biasKind: ["alibi"] },
  head: { biasKind: ["alibi", "t5"] },
  buckets: { biasKind: ["t5"] },
  kerpleP: { biasKind: ["kerple"] },
  kerpleA: { biasKind: ["kerple"] },
  window: { biasKind: ["window"] },
  gridHead: { gridKind: ["mixed"] },
  coordinates: { gridKind: ["sine", "axial", "mixed"] },
};
const LONGEST = 40;

/** { state, names }: the state, and which of its fields have been read from it since. */
export function watched(state) {
  const names = new Set();
  const get = (target, name) => {
    names.add(name);
    return target[name];
  };
  return { state: new Proxy(state, { get }), names };
}

/** The version and the fields of these names, as far as they count. */
export function caption(version, state, names) {
  const counts = (name) =>
    Object.entries(OF_CHOICE[name] ?? {}).every(
      ([of, choices]) => !names.includes(of) || choices.includes(state[of]),
    );
  const shown = NAMES.filter((name) => names.includes(name) && name in LABELS && counts(name));
  const parts = shown.map((name) => `${LABELS[name]} ${told(name, state[name])}`.trim());
  return [`posenc ${version}`, ...parts].join(" · ");
}

function told(name, value) {
  if (name === "code") return String(value + 1);
  if (name === "sentence" || name === "attended") {
    return `“${value.length > LONGEST ? `${value.slice(0, LONGEST - 1)}…` : value}”`;
  }
  return typeof value === "number" ? whole(value) : [value].flat().join(", ");
}
