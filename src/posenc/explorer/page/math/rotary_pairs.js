// The score of a rotary head as what it is: a sum over pairs, each a cosine of the distance.

import { channelsOf } from "./rotary.js";
import { geometric } from "./scaling.js";

/**
 * The pairs of a head whose first `turned` pairs turn, the others standing still.
 *
 * how = { turned, base, pairing }: as in the library the channels that turn stand first, with the
 * frequencies of a head of their own width.
 */
export function pairsOf(q, k, { turned, base, pairing }) {
  const frequencies = geometric(2 * turned, base);
  return Array.from({ length: q.length / 2 }, (_, i) => {
    const turns = i < turned;
    const [a, b] = turns ? channelsOf(i, 2 * turned, pairing) : [2 * i, 2 * i + 1];
    return {
      channels: [a, b],
      turns,
      omega: turns ? frequencies[i] : 0,
      size: Math.hypot(q[a], q[b]) * Math.hypot(k[a], k[b]),
      query: Math.atan2(q[b], q[a]),
      key: Math.atan2(k[b], k[a]),
    };
  });
}

/** What a pair adds to the score of a query at m and a key at n; `alone`: the key stays unturned. */
export const part = (pair, m, n, alone = false) =>
  pair.size * Math.cos(pair.query - pair.key + pair.omega * (m - (alone ? 0 : n)));

/** The score: all parts together. */
export const score = (pairs, m, n, alone) =>
  pairs.reduce((sum, pair) => sum + part(pair, m, n, alone), 0);

/**
 * Where the score at a distance must lie: the sum of the pairs from `first` on, and the others, which
 * turn faster, each with its full size on either side.
 */
export function envelope(pairs, first, m, n, alone) {
  const moving = pairs.filter((pair, i) => i < first && pair.turns);
  const rest = pairs.filter((pair) => !moving.includes(pair));
  const middle = score(rest, m, n, alone);
  const reach = moving.reduce((sum, { size }) => sum + size, 0);
  return [middle - reach, middle + reach];
}
