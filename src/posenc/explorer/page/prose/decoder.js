// What section 13 says of a decoder's mask, positions and cache.

import { counted, fixed, power } from "../interface/numbers.js";
import { columns, hidden, positions, weightsOf } from "../math/decoder.js";
import { DECODER } from "../state/defaults.js";

/** What section 13 draws: columns, positions, the row of the step, right and with the fault. */
export function decoderOf(state) {
  const { decoderStep, pads, layout, decoderFault, base } = state;
  const all = columns({ count: DECODER.count, pads, packed: layout === "packed" });
  const row = pads + decoderStep;
  const run = (fault) => {
    const places = positions(all, DECODER.prompt, fault);
    return { places, weights: weightsOf(all, row, { places, base, dim: DECODER.dim, fault }) };
  };
  return { all, row, right: run("none"), shown: run(decoderFault) };
}

/** Where the token of this step stands. */
export function aboutPlace(state) {
  const { all, row, shown } = decoderOf(state);
  const { token, document } = all[row];
  const where = state.layout === "packed" ? ` of document ${"AB"[document]}` : "";
  return `Token ${token} stands in column ${row} and has position ${shown.places[row]}${where}.`;
}

/** Whom it sees. */
export function aboutMask(state) {
  const { all, row } = decoderOf(state);
  const reasons = all.map((_, key) => hidden(all, row, key, state.decoderFault));
  const count = (reason) => reasons.filter((each) => each === reason).length;
  const parts = [
    [count("after"), "later one"],
    [count("pad"), "pad"],
    [count("document"), "token"],
  ]
    .filter(([n]) => n)
    .map(([n, thing]) => counted(n, thing) + (thing === "token" ? " of the other document" : ""));
  const not = parts.length ? `; it does not see ${parts.join(" and ")}` : "";
  return `It sees ${counted(count(""), "column")}, itself among them${not}.`;
}

/** What the cache saves at this step. */
export function aboutCache(state) {
  const { row } = decoderOf(state);
  const { decoderStep: token } = state;
  if (token < DECODER.prompt) {
    return `It belongs to the prompt of ${DECODER.prompt} tokens, which is read at once; the cache is filled meanwhile.`;
  }
  return (
    `Keys and values of ${counted(row, "column")} come from the cache: 1 row of ${row + 1} scores instead of ` +
    `a square of ${(row + 1) ** 2}. Cached keys are turned already, so the new query must go on counting ` +
    (state.layout === "packed" ? "in its own document." : "where they ended.")
  );
}

/** The largest difference between the weights shown and the right ones. */
export function wrongBy(state) {
  const { right, shown } = decoderOf(state);
  return Math.max(...right.weights.map((w, i) => Math.abs(w - shown.weights[i])));
}

/** What the fault does to the weights of this step. */
export function aboutFault(state) {
  if (state.decoderFault === "none") {
    return "Nothing is forgotten: a step from the cache has the weights of the whole pass.";
  }
  const wrong = wrongBy(state);
  const told = wrong ? (wrong < 1e-3 ? power(wrong) : fixed(wrong)) : "0";
  const what = state.decoderFault === "offset" ? "With the offset forgotten" : "With the causal mask alone";
  const start = `${what}, the weights of this step are off by ${told} at most`;
  if (wrong > 1e-9) return `${start}. No error is raised.`;
  const why = {
    offset: "tokens of the prompt, and the first of a document, have their right position yet",
    mask: "before this token there is nothing to hide",
  }[state.decoderFault];
  return `${start}: ${why}.`;
}

/** What pads on the left do. */
export function aboutPads(state) {
  if (!state.pads) return "Requests of unequal length are padded on the left, so that all end together: add pads.";
  const { all, row, right } = decoderOf(state);
  const alone = decoderOf({ ...state, pads: 0 }).right.weights;
  const apart = Math.max(
    ...alone.map((w, i) => Math.abs(w - right.weights[i + state.pads])),
  );
  return (
    `${counted(state.pads, "pad")} on the left move${state.pads === 1 ? "s" : ""} token ${all[row].token} to column ${row}; counted ` +
    `from the first token and with pads hidden, its weights differ from those without pads by ${apart ? power(apart) : "exactly 0"}.`
  );
}
