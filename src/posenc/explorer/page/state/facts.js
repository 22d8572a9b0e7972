// What follows from the state and is needed by several figures; the last answer is kept.

import { CONVENTIONS, channels, pairing } from "../math/conventions.js";
import { forward, randomParameters } from "../math/encoder.js";
import { add } from "../math/matrices.js";
import { paperRows } from "../math/order.js";
import { normal, order } from "../math/random.js";
import { alikenessMap } from "../math/patches.js";
import { rotate } from "../math/rotary.js";
import { pairsOf as rotaryPairsOf } from "../math/rotary_pairs.js";
import { ROUNDINGS, toBfloat16 } from "../math/rounding.js";
import { geometric, hasRamp, linear, llama3, ntk, yarn } from "../math/scaling.js";
import { scheme, withRows } from "../math/schemes.js";
import { seen } from "../math/seen.js";
import { embedding, tokens } from "../math/sentences.js";
import { distance, gram } from "../math/similarity.js";
import { block, frequency, value, wavelength } from "../math/sincos.js";
import { CONTENT_SEED, GRID_DIM, MODEL, ROTARY, SENTENCE_DIM, SLOW } from "./defaults.js";

function kept(compute) {
  let key;
  let answer;
  return (...given) => {
    const asked = given.join("|");
    if (asked !== key) [key, answer] = [asked, compute(...given)];
    return answer;
  };
}

/** The channels of a width. */
export const channelsOf = kept(channels);

/** The wavelength of every channel; that of a column of zeros has no end. */
export const wavelengthsOf = kept((convention, dim, base) =>
  channelsOf(convention, dim).map((channel) =>
    channel.kind === "zero" ? Infinity : wavelength(frequency(base, channel)),
  ),
);

/** Its pairs of sine and cosine, and the channels that have no partner. */
export const pairsOf = kept(pairing);

/** The frequencies of the pairs. */
export const frequenciesOf = kept((convention, dim, base) =>
  pairsOf(convention, dim).pairs.map((pair) => frequency(base, pair)),
);

/** All dot products of the table, as profiles over difference and sum of two positions. */
export const gramOf = kept((convention, dim, base, length) =>
  gram(channelsOf(convention, dim), base, CONVENTIONS[convention].first, length),
);

/** All rows of the table, one after the other. */
export const rowsOf = ({ convention, dim, base, length }) =>
  block(channelsOf(convention, dim), base, CONVENTIONS[convention].first, length);

/** One row of the table, at any position. */
export const rowOf = ({ convention, dim, base }, position) =>
  channelsOf(convention, dim).map((channel) =>
    value(channel, base, position + CONVENTIONS[convention].first),
  );

/** The pair of a channel, with its number among the pairs; nothing for one without a partner. */
export function pairAt({ convention, dim, dimension }) {
  const { pairs } = pairsOf(convention, dim);
  const index = pairs.findIndex((pair) => pair.sin === dimension || pair.cos === dimension);
  return index < 0 ? null : { index, ...pairs[index] };
}

/** The value of the table under the cursor, in the chosen dtype. */
export function valueAt({ convention, dim, base, dtype }, position, dimension) {
  const channel = channelsOf(convention, dim)[dimension];
  return ROUNDINGS[dtype](value(channel, base, position + CONVENTIONS[convention].first));
}

/**
 * How many of the first rows stay different when the finished table is rounded to bfloat16.
 *
 * Rows that differ in some columns differ, so few columns are looked at until all rows do.
 */
export const distinctRowsOf = kept((convention, dim, base, length) => {
  const seen = new Map();
  for (const channel of channelsOf(convention, dim)) {
    seen.set(`${channel.kind} ${frequency(base, channel)}`, channel);
  }
  const different = [...seen.values()].filter(({ kind }) => kind !== "zero");
  let groups = new Uint32Array(length);
  let count = 1;
  for (const channel of different) {
    const values = block([channel], base, CONVENTIONS[convention].first, length);
    const numbers = new Map();
    groups = groups.map((group, p) => {
      const key = `${group} ${toBfloat16(values[p])}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key);
    });
    count = numbers.size;
    if (count === length) break;
  }
  return count;
});

/** The sentence of section 7: its tokens in order, embedding, encoding and sum. */
export const sumOf = ({ sentence, shuffle, scaled, base }) =>
  keptSum(sentence, shuffle, scaled, base);

const keptSum = kept((sentence, shuffle, scaled, base) => {
  const { kept: words } = tokens(sentence);
  const all = order(words.length, shuffle).map((i) => words[i]);
  const scale = scaled ? Math.sqrt(SENTENCE_DIM) : 1;
  const embeddings = all.map((word) => embedding(word, SENTENCE_DIM, scale));
  const encoding = paperRows(all.length, SENTENCE_DIM, base);
  return { all, embeddings, encoding, sum: add(embeddings, encoding) };
});

const draw = normal(ROTARY.seed);
const drawn = () => Float64Array.from({ length: ROTARY.dim }, draw);
export const QUERY = drawn();
export const KEY = drawn();

/**
 * Query and key of section 8: as they are, turned, and turned after moving both by t.
 *
 * The key stands at the cursor's position and the query so many positions after it as the offset
 * says: the offset is the distance, query − key.
 */
export function rotaryStagesOf({ base, position, offset, moved, pairing }) {
  const frequencies = geometric(ROTARY.dim, base);
  const at = (name, m, n) => ({
    name,
    m,
    n,
    q: m === null ? QUERY : rotate(QUERY, m, frequencies, pairing),
    k: n === null ? KEY : rotate(KEY, n, frequencies, pairing),
  });
  const [m, n] = [position + offset, position];
  return [at("as they are", null, null), at("turned", m, n), at("moved", m + moved, n + moved)];
}

const drawSlow = normal(SLOW.seed);
const drawnSlow = () => Float64Array.from({ length: SLOW.dim }, drawSlow);
export const SLOW_QUERY = drawnSlow();
export const SLOW_KEY = drawnSlow();

/** The pairs of section 10's query and key. */
export const slowPairsOf = ({ turnedPairs, base, pairing }) =>
  keptSlow(turnedPairs, base, pairing);

const keptSlow = kept((turned, base, pairing) =>
  rotaryPairsOf(SLOW_QUERY, SLOW_KEY, { turned, base, pairing }),
);

/** The schedules of section 8 by name, or nothing where a formula has no meaning. */
export function schedulesOf({ base, dim, factor, trained }) {
  const d = dim - (dim % 2);
  if (base === 1 || d <= 2 || !hasRamp(d, base, trained)) return null;
  return {
    plain: geometric(d, base),
    linear: linear(d, base, factor),
    NTK: ntk(d, base, factor),
    YaRN: yarn(d, base, factor, trained),
  };
}

/** The same and Llama 3's, by the names of the methods of section 11. */
export function longSchedulesOf(state) {
  const found = schedulesOf(state);
  if (!found) return null;
  const { base, dim, factor, trained } = state;
  const { plain, linear: even, NTK, YaRN } = found;
  const stepped = llama3(dim - (dim % 2), base, factor, trained);
  return { none: plain, linear: even, ntk: NTK, yarn: YaRN, llama3: stepped };
}

/** Why there are none. */
export function schedulesRefusal({ base, dim }) {
  if (base === 1) return "Base 1: YaRN divides by ln n = 0; choose a base above 1.";
  if (dim < 4) return "NTK divides by d − 2; choose 4 dimensions or more.";
  return "Every pair turns so often in L₀ that YaRN has no ramp; choose a larger base or a shorter L₀.";
}

/** Section 12: bias, scores and weights of one query's keys. */
export const seenOf = ({ biasKind, heads, head, buckets, kerpleP, kerpleA, window, keys }) =>
  keptSeen(biasKind, heads, head, buckets, kerpleP, kerpleA, window, keys);

const keptSeen = kept((biasKind, heads, head, buckets, kerpleP, kerpleA, window, keys) =>
  seen({ biasKind, heads, head, buckets, kerpleP, kerpleA, window, keys }, CONTENT_SEED),
);

/** Section 14: how alike every patch is to the chosen one. */
export const patchMapOf = (state) =>
  keptMap(
    ...["gridKind", "gridSize", "gridHead", "coordinates", "patchRow", "patchColumn"].map(
      (name) => state[name],
    ),
  );

const keptMap = kept((gridKind, gridSize, gridHead, coordinates, patchRow, patchColumn) =>
  alikenessMap({ gridKind, gridSize, gridHead, coordinates, patchRow, patchColumn }, GRID_DIM),
);

const parameters = randomParameters(MODEL.dim, MODEL.inner, MODEL.seed);

/** The sentence of section 9 through the encoder, without the encoding and with it. */
export const encoderRunOf = kept((attended, base, name = "sinusoidal") => {
  const words = tokens(attended).kept;
  const embeddings = words.map((word) => embedding(word, MODEL.dim, Math.sqrt(MODEL.dim)));
  const off = forward(embeddings, parameters, MODEL.heads);
  return { words, off, ...encoded(embeddings, base, name) };
});

function encoded(embeddings, base, name) {
  const chosen = scheme(name, { ...MODEL, count: embeddings.length, base });
  const { encoding, sum } = withRows(embeddings, chosen);
  const on = { embeddings, encoding, sum, ...forward(sum, parameters, MODEL.heads, chosen) };
  return { on, bias: chosen.bias };
}

/** What differs by less is the same number, summed in another order. */
const SAME = 1e-9;

/** Whether words in another order come out as others, and whether two equal words come out as one. */
export const placesOf = kept((attended, base, name) => {
  const { off, on } = encoderRunOf(attended, base, name);
  const { embeddings, output } = on;
  const [first, ...others] = embeddings.keys();
  const orders = [
    [...others, first],
    [...others.slice(0, 1), first, ...others.slice(1)],
  ];
  const moved = (order) => {
    const found = encoded(order.map((i) => embeddings[i]), base, name).on.output;
    return order.some((i, place) => distance(found[place], output[i]) >= SAME);
  };
  // A word alone has no other order: there it is asked whether the encoding does anything.
  const alone = others.length === 0;
  const told = alone ? distance(output[0], off.output[0]) >= SAME : orders.some(moved);
  const alike = (i, j) =>
    distance(embeddings[i], embeddings[j]) === 0 && distance(output[i], output[j]) < SAME;
  const joined = output.some((_, i) => output.slice(0, i).some((_, j) => alike(i, j)));
  return { told, joined };
});
