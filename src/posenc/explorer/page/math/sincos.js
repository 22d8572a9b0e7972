// Frequencies, wavelengths and values of channels; and whole blocks of cosines and sines at once.

/** ω = n^(−top/bottom), in radians per position. */
export const frequency = (base, { top, bottom }) => Math.pow(base, -top / bottom);

/** How many positions one turn takes. */
export const wavelength = (omega) => (2 * Math.PI) / omega;

/** The value of one channel at one position (already counted from the convention's first). */
export function value(channel, base, position) {
  if (channel.kind === "zero") return 0;
  const angle = position * frequency(base, channel);
  return channel.kind === "sin" ? Math.sin(angle) : Math.cos(angle);
}

const FINE = 64;

/**
 * Hands each(r, cos, sin) the cosines and sines of (start + r)·ω_f for every r < count.
 *
 * Each angle is split as (64a + b)·ω, so that few sines are taken and the rest is multiplication;
 * nothing is carried from row to row, so errors do not grow. The two rows are used again.
 */
export function eachRow(frequencies, start, count, each) {
  const width = frequencies.length;
  const { coarse, fine, from } = tables(frequencies, start, count);
  const cos = new Float64Array(width);
  const sin = new Float64Array(width);
  for (let r = 0; r < count; r++) {
    const position = start + r;
    const a = Math.floor(position / FINE);
    const c = (a - from) * width;
    const f = (position - a * FINE) * width;
    for (let i = 0; i < width; i++) {
      const [cc, cs] = [coarse.cos[c + i], coarse.sin[c + i]];
      const [fc, fs] = [fine.cos[f + i], fine.sin[f + i]];
      cos[i] = cc * fc - cs * fs;
      sin[i] = cs * fc + cc * fs;
    }
    each(r, cos, sin);
  }
}

/** Σ_f weight_f · cos((start + k)·ω_f) for every k < count, by the same split. */
export function sumsOfCosines(frequencies, weights, start, count) {
  const width = frequencies.length;
  const { coarse, fine, from } = tables(frequencies, start, count);
  for (let at = 0; at < fine.cos.length; at++) {
    fine.cos[at] *= weights[at % width];
    fine.sin[at] *= weights[at % width];
  }
  const sums = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    const a = Math.floor((start + k) / FINE);
    const c = (a - from) * width;
    const f = (start + k - a * FINE) * width;
    let sum = 0;
    for (let i = 0; i < width; i++) {
      sum += coarse.cos[c + i] * fine.cos[f + i] - coarse.sin[c + i] * fine.sin[f + i];
    }
    sums[k] = sum;
  }
  return sums;
}

/** The two parts of every angle of a run: whole steps of 64 positions, and what is left. */
function tables(frequencies, start, count) {
  const from = Math.floor(start / FINE);
  const steps = Math.floor((start + count - 1) / FINE) - from + 1;
  return {
    from,
    coarse: turns(frequencies, from * FINE, FINE, steps),
    fine: turns(frequencies, 0, 1, FINE),
  };
}

/** cos and sin of (from + k·step)·ω for k < count: two planes, a row for each k. */
function turns(frequencies, from, step, count) {
  const width = frequencies.length;
  const [cos, sin] = [new Float64Array(count * width), new Float64Array(count * width)];
  for (let k = 0, at = 0; k < count; k++) {
    for (let i = 0; i < width; i++, at++) {
      const angle = (from + k * step) * frequencies[i];
      cos[at] = Math.cos(angle);
      sin[at] = Math.sin(angle);
    }
  }
  return { cos, sin };
}

/** The values of some channels over a run of positions: [count × channels], row by row. */
export function block(channels, base, start, count) {
  const width = channels.length;
  const exponents = [...new Set(channels.map(({ top }) => top))];
  const bottom = channels.find(({ kind }) => kind !== "zero")?.bottom ?? 1;
  const frequencies = exponents.map((top) => frequency(base, { top, bottom }));
  const place = new Map(exponents.map((top, i) => [top, i]));
  const source = Uint32Array.from(channels, ({ top }) => place.get(top));
  const isSine = Uint8Array.from(channels, ({ kind }) => kind === "sin");
  // Columns of zeros stand last, where an odd width has one.
  const zero = channels.at(-1)?.kind === "zero";
  const values = new Float64Array(count * width);
  eachRow(frequencies, start, count, (r, cos, sin) => {
    const at = r * width;
    for (let j = 0; j < width; j++) values[at + j] = (isSine[j] ? sin : cos)[source[j]];
    if (zero) values[at + width - 1] = 0;
  });
  return values;
}
