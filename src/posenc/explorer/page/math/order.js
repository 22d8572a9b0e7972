// Whether an encoder can tell two orders of the same words apart.

import { channels } from "./conventions.js";
import { forward, randomParameters } from "./encoder.js";
import { add } from "./matrices.js";
import { embedding } from "./sentences.js";
import { value } from "./sincos.js";

/** The first `count` rows of the paper's table. */
export const paperRows = (count, dim, base) =>
  Array.from({ length: count }, (_, p) => channels("paper", dim).map((c) => value(c, base, p)));

/**
 * The largest difference between the outputs of one word in two orders, without an encoding and with
 * it. Without one the difference is rounding: attention sees a set.
 */
export function orderEffect(words, order, base, { dim, heads, inner, seed }) {
  const parameters = randomParameters(dim, inner, seed);
  const x = words.map((word) => embedding(word, dim, Math.sqrt(dim)));
  const rows = paperRows(words.length, dim, base);
  const run = (encode) => {
    const first = forward(encode(x), parameters, heads).output;
    const second = forward(encode(order.map((i) => x[i])), parameters, heads).output;
    const apart = order.map((i, place) => second[place].map((v, c) => Math.abs(v - first[i][c])));
    return Math.max(...apart.flat());
  };
  return { without: run((e) => e), with: run((e) => add(e, rows)) };
}
