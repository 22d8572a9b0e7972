// Dot products and distances of positions, from the frequencies alone.

import { frequency, sumsOfCosines } from "./sincos.js";

/**
 * All dot products of a table of `length` positions, as two short profiles.
 *
 * sin a sin b = ½ (cos(a − b) − cos(a + b)) and cos a cos b = ½ (cos(a − b) + cos(a + b)), so
 * PE(p) · PE(q) = difference[|q − p|] + sum[p + q]. Where every sine has its cosine the second part
 * cancels: sum is null, and the matrix of dot products is constant along its diagonals.
 */
export function gram(channels, base, first, length) {
  const weights = new Map();
  for (const { kind, top, bottom } of channels) {
    if (kind === "zero") continue;
    const met = weights.get(top) ?? { top, bottom, near: 0, far: 0 };
    met.near += 0.5;
    met.far += kind === "cos" ? 0.5 : -0.5;
    weights.set(top, met);
  }
  const all = [...weights.values()];
  const single = all.filter((each) => each.far);
  return {
    difference: weighted(all, "near", base, 0, length),
    sum: single.length ? weighted(single, "far", base, 2 * first, 2 * length) : null,
  };
}

function weighted(parts, side, base, start, count) {
  const frequencies = parts.map((part) => frequency(base, part));
  const weights = Float64Array.from(parts, (part) => part[side]);
  return sumsOfCosines(frequencies, weights, start, count);
}

/** PE(p) · PE(q). */
export const product = ({ difference, sum }, p, q) =>
  difference[Math.abs(q - p)] + (sum ? sum[p + q] : 0);

/** The largest product of all: that of a row with itself, with full pairs half the width. */
export function largestProduct({ difference, sum }, length) {
  if (!sum) return difference[0];
  const squares = Array.from({ length }, (_, p) => difference[0] + sum[2 * p]);
  return Math.max(...squares);
}

/** Squared distances below this, a column, are differences of sums that round too much to compare. */
const COARSE = 1e-8;

/**
 * The two nearest positions; where only the offset matters, the first such pair.
 *
 * table() is all rows, one after the other: it is asked for where distances must be measured.
 */
export function closest(profiles, length, table) {
  const { difference, sum } = profiles;
  // Differences below this are rounding: the first of equally near pairs is named.
  const clear = 1e-12 * difference[0];
  let best = { first: 0, second: 1, squared: Infinity };
  for (let k = 1; k < length; k++) {
    const starts = sum ? length - k : 1;
    const common = 2 * (difference[0] - difference[k]);
    for (let p = 0; p < starts; p++) {
      const q = p + k;
      const squared = sum ? common + sum[2 * p] + sum[2 * q] - 2 * sum[p + q] : common;
      if (squared < best.squared - clear) best = { first: p, second: q, squared };
    }
  }
  const width = 2 * difference[0];
  if (sum && best.squared < COARSE * width) best = nearer(table(), length, best);
  return { first: best.first, second: best.second };
}

/**
 * The nearest pair, given one: two that are nearer are as near in every column.
 *
 * So only those are measured that are in the column with the longest range.
 */
function nearer(rows, length, given) {
  const width = rows.length / length;
  const row = (p) => rows.subarray(p * width, (p + 1) * width);
  const at = widest(rows, length, width);
  const places = Array.from({ length }, (_, p) => p).sort((p, q) => row(p)[at] - row(q)[at]);
  let best = { ...given, away: distance(row(given.first), row(given.second)) };
  for (let step = 1, met = true; met && step < length; step++) {
    met = false;
    for (let i = 0; i + step < length; i++) {
      const [one, other] = [places[i], places[i + step]];
      if (row(other)[at] - row(one)[at] >= best.away) continue;
      met = true;
      const away = distance(row(one), row(other));
      // Of equally near pairs, which rounding would tell apart, the given one stays.
      if (away < best.away * (1 - 1e-9))
        best = { first: Math.min(one, other), second: Math.max(one, other), away };
    }
  }
  return best;
}

function widest(rows, length, width) {
  const ranges = Array.from({ length: width }, (_, j) => {
    let [low, high] = [Infinity, -Infinity];
    for (let p = 0; p < length; p++) {
      const v = rows[p * width + j];
      [low, high] = [Math.min(low, v), Math.max(high, v)];
    }
    return high - low;
  });
  return ranges.indexOf(Math.max(...ranges));
}

/** a · b. */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** |a − b|. */
export function distance(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] - b[i]) ** 2;
  return Math.sqrt(sum);
}
