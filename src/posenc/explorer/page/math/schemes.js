// The same encoder with order told in six ways: added to embeddings, turned into scores, or not at all.

import { bias, slopes } from "./alibi.js";
import { add } from "./matrices.js";
import { paperRows } from "./order.js";
import { normal } from "./random.js";
import { rotate } from "./rotary.js";
import { geometric } from "./scaling.js";
import { t5Entries } from "./seen.js";
import { bucket } from "./t5.js";

const T5 = { buckets: 32, furthest: 128, bidirectional: true };

/** Rows of a learned table: seeded random numbers as long as a sinusoidal row, never learned. */
export const learnedRows = (count, dim) =>
  Array.from({ length: count }, (_, p) => {
    const draw = normal(5000 + p);
    return Array.from({ length: dim }, () => draw() * Math.SQRT1_2);
  });

/**
 * What a scheme does where: rows to add to `count` embeddings of width dim, turn(row, position) of
 * queries and keys, and bias(head, query, key) of scores; what it does not do is absent.
 */
export function scheme(name, { count, dim, heads, base }) {
  const depth = dim / heads;
  const frequencies = geometric(depth, base);
  const entries = Array.from({ length: heads }, (_, h) => t5Entries(h, T5.buckets));
  return {
    none: {},
    sinusoidal: { rows: paperRows(count, dim, base) },
    learned: { rows: learnedRows(count, dim) },
    rotary: { turn: (row, position) => Array.from(rotate(row, position, frequencies, "half")) },
    alibi: { bias: (h, q, k) => bias(slopes(heads)[h], q - k) },
    t5: { bias: (h, q, k) => entries[h][bucket(q - k, T5)] },
  }[name];
}

/** Embeddings with a scheme's rows, and the rows themselves: zeros where it adds none. */
export function withRows(embeddings, { rows }) {
  const encoding = rows ?? embeddings.map((row) => row.map(() => 0));
  return { encoding, sum: add(embeddings, encoding) };
}
