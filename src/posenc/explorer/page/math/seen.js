// What attention sees of its keys once a bias is added and the softmax taken.

import { bias as alibiBias, slopes } from "./alibi.js";
import { softmax } from "./matrices.js";
import { normal } from "./random.js";
import { bucket } from "./t5.js";

/** KERPLE, logarithmic: −p ln(1 + a d). */
export const kerple = (p, a, distance) => -p * Math.log1p(a * Math.max(distance, 0));

const T5_FAR = 128;

/** The bias of each distance 0 … keys − 1 for keys before their query; −∞ hides. */
export function biases({ biasKind, heads, head, buckets, kerpleP, kerpleA, window, keys }) {
  const slope = slopes(heads)[head];
  const of = {
    none: () => 0,
    alibi: (d) => alibiBias(slope, d),
    t5: t5Of(head, Number(buckets)),
    kerple: (d) => kerple(kerpleP, kerpleA, d),
    window: (d) => (d < window ? 0 : -Infinity),
  }[biasKind];
  return Array.from({ length: keys }, (_, d) => of(d));
}

/** A head's numbers for T5's buckets: seeded random, not learned. */
export function t5Entries(head, buckets) {
  const draw = normal(1000 + head);
  return Array.from({ length: buckets }, draw);
}

function t5Of(head, buckets) {
  const entries = t5Entries(head, buckets);
  const options = { buckets, furthest: T5_FAR, bidirectional: false };
  return (d) => entries[bucket(d, options)];
}

/** Scores of content, one a key: seeded random numbers of variance 1, the nearest key first. */
export function contentScores(keys, seed) {
  const draw = normal(seed);
  return Array.from({ length: keys }, draw);
}

/** Bias, score after it and weight of every key, and the weights that no bias would give. */
export function seen(how, seed) {
  const [bias, content] = [biases(how), contentScores(how.keys, seed)];
  const scores = content.map((s, d) => s + bias[d]);
  return { bias, content, scores, weights: softmax(scores), plain: softmax(content) };
}

/** Running sums. */
export function running(weights) {
  let sum = 0;
  return weights.map((w) => (sum += w));
}

/** How many of the nearest keys hold a share of the weight. */
export function nearestHolding(weights, share) {
  const found = running(weights).findIndex((sum) => sum >= share);
  return found < 0 ? weights.length : found + 1;
}

/** exp(entropy): as many keys seen equally would be as uncertain. */
export const keysSeen = (weights) =>
  Math.exp(-weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0));
