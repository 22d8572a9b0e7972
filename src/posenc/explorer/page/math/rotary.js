// Rotary: pairs of channels of queries and keys, turned by position × frequency.

/** The channel numbers of pair i of a head of width d. */
export const channelsOf = (i, dim, pairing) =>
  pairing === "half" ? [i, i + dim / 2] : [2 * i, 2 * i + 1];

/** x with each pair turned by position·ω_i. */
export function rotate(x, position, frequencies, pairing) {
  const turned = Float64Array.from(x);
  frequencies.forEach((omega, i) => {
    const [a, b] = channelsOf(i, x.length, pairing);
    const c = Math.cos(position * omega);
    const s = Math.sin(position * omega);
    turned[a] = x[a] * c - x[b] * s;
    turned[b] = x[b] * c + x[a] * s;
  });
  return turned;
}
