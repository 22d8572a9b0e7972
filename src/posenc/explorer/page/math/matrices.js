// Small matrices as arrays of rows.

import { dot } from "./similarity.js";

/** x Wᵀ + b for every row of x; W is [out × in], as linear layers keep it. */
export const linear = (x, { weight, bias }) =>
  x.map((row) => weight.map((w, o) => dot(row, w) + (bias ? bias[o] : 0)));

/** a + b. */
export const add = (a, b) => a.map((row, r) => row.map((x, c) => x + b[r][c]));

/** exp(x) / Σ exp(x), from which the largest is taken off first. */
export function softmax(row) {
  const most = Math.max(...row);
  const powers = row.map((x) => Math.exp(x - most));
  const sum = powers.reduce((all, x) => all + x, 0);
  return powers.map((x) => x / sum);
}

/** γ (x − mean) / √(variance + ε) + β for one row. */
export function layerNorm(row, { weight, bias, eps = 1e-5 }) {
  const mean = row.reduce((all, x) => all + x, 0) / row.length;
  const variance = row.reduce((all, x) => all + (x - mean) ** 2, 0) / row.length;
  const scale = 1 / Math.sqrt(variance + eps);
  return row.map((x, i) => weight[i] * (x - mean) * scale + bias[i]);
}

/** |row|. */
export const norm = (row) => Math.sqrt(dot(row, row));
