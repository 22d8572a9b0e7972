// One block of the encoder of Vaswani et al., with every number on the way.

import { add, layerNorm, linear, softmax } from "./matrices.js";
import { normal } from "./random.js";
import { dot } from "./similarity.js";

/**
 * x [tokens × dim] through attention, add & norm, feed-forward, add & norm.
 *
 * Lists of heads hold [tokens × depth] (queries, keys, values, gathered) or [tokens × tokens]
 * (scores, weights); everything else is [tokens × width]. A scheme may turn queries and keys, and
 * add a bias to scores.
 */
export function forward(x, parameters, heads, scheme = {}) {
  const attended = attention(x, parameters, heads, scheme);
  const summed = add(x, attended.output);
  const normed = summed.map((row) => layerNorm(row, parameters.attentionNorm));
  const inner = linear(normed, parameters.expand);
  const activated = inner.map((row) => row.map((v) => Math.max(v, 0)));
  const fed = linear(activated, parameters.contract);
  const summedAgain = add(normed, fed);
  const output = summedAgain.map((row) => layerNorm(row, parameters.feedForwardNorm));
  return {
    ...attended,
    attended: attended.output,
    summed,
    normed,
    inner,
    activated,
    fed,
    summedAgain,
    output,
  };
}

/** softmax(Q Kᵀ / √depth + bias) V in each head, joined and mapped once more. */
export function attention(x, parameters, heads, { turn, bias } = {}) {
  const [given, offered, values] = ["queries", "keys", "values"].map((name) =>
    split(linear(x, parameters[name]), heads),
  );
  const placed = (all) => (turn ? all.map((head) => head.map(turn)) : all);
  const [queries, keys] = [placed(given), placed(offered)];
  const root = Math.sqrt(queries[0][0].length);
  const scores = queries.map((q, h) =>
    q.map((row, i) => keys[h].map((key, j) => dot(row, key) / root + (bias ? bias(h, i, j) : 0))),
  );
  const weights = scores.map((matrix) => matrix.map(softmax));
  const gathered = weights.map((matrix, h) => matrix.map((row) => mix(row, values[h])));
  const joined = x.map((_, t) => gathered.flatMap((head) => head[t]));
  const output = linear(joined, parameters.output);
  return { queries, keys, values, scores, weights, gathered, joined, output };
}

/** The features of each token, dealt out to the heads in order. */
function split(x, heads) {
  const depth = x[0].length / heads;
  return Array.from({ length: heads }, (_, h) =>
    x.map((row) => row.slice(h * depth, (h + 1) * depth)),
  );
}

const mix = (weights, rows) =>
  rows[0].map((_, c) => weights.reduce((sum, w, r) => sum + w * rows[r][c], 0));

/** Seeded random parameters of variance 1/in: they show the mechanism and know nothing. */
export function randomParameters(dim, inner, seed) {
  const draw = normal(seed);
  const map = (outs, ins) => ({
    weight: Array.from({ length: outs }, () =>
      Array.from({ length: ins }, () => draw() / Math.sqrt(ins)),
    ),
    bias: new Array(outs).fill(0),
  });
  const plainNorm = () => ({ weight: new Array(dim).fill(1), bias: new Array(dim).fill(0) });
  return {
    queries: map(dim, dim),
    keys: map(dim, dim),
    values: map(dim, dim),
    output: map(dim, dim),
    expand: map(inner, dim),
    contract: map(dim, inner),
    attentionNorm: plainNorm(),
    feedForwardNorm: plainNorm(),
  };
}
