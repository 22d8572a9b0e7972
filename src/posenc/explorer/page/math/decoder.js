// A decoder of one head with rotary positions: who sees whom, and where each token stands.

import { softmax } from "./matrices.js";
import { normal } from "./random.js";
import { rotate } from "./rotary.js";
import { geometric } from "./scaling.js";
import { dot } from "./similarity.js";

/**
 * The columns of a batch's row: pads on the left, then the tokens, in one document or in two.
 *
 * Each is { pad, token (its number among the tokens), document, place (in its document) }.
 */
export function columns({ count, pads, packed }) {
  const left = Array.from({ length: pads }, () => ({ pad: true }));
  const first = packed ? count / 2 : count;
  const tokens = Array.from({ length: count }, (_, token) => {
    const document = token < first ? 0 : 1;
    return { pad: false, token, document, place: token - document * first };
  });
  return [...left, ...tokens];
}

/** Why a query does not see a key ("after", "pad", "document"), or "" where it does. */
export function hidden(all, query, key, fault) {
  if (key > query) return "after";
  if (fault === "mask") return "";
  if (all[key].pad !== all[query].pad) return "pad";
  if (!all[key].pad && all[key].document !== all[query].document) return "document";
  return "";
}

/**
 * The position of every column: in its document, from the first token on.
 *
 * With the fault "offset" the tokens after the prompt, which come one by one, all stand at 0, as they
 * do where a cached step numbers the one token that it was given.
 */
export const positions = (all, prompt, fault) =>
  all.map(({ pad, token, place }) =>
    pad ? 0 : fault === "offset" && token >= prompt ? 0 : place,
  );

/** Query and key of a token, seeded random; a pad is a token like any other to the projections. */
export function vectors(token, dim) {
  const draw = normal(3000 + (token ?? -1));
  const one = () => Float64Array.from({ length: dim }, draw);
  return { query: one(), key: one() };
}

/** The weights of one query over all columns: 0 where it does not see. */
export function weightsOf(all, query, { places, base, dim, fault }) {
  const frequencies = geometric(dim, base);
  const turned = (side, i) =>
    rotate(vectors(all[i].token, dim)[side], places[i], frequencies, "half");
  const q = turned("query", query);
  const scores = all.map((_, key) =>
    hidden(all, query, key, fault) ? -Infinity : dot(q, turned("key", key)) / Math.sqrt(dim),
  );
  return softmax(scores);
}
