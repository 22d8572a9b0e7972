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

/** The two nearest positions; where only the offset matters, the first such pair. */
export function closest(profiles, length) {
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
  return { first: best.first, second: best.second };
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
