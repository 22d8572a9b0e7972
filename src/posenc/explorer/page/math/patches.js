// How alike two patches of an image are, by what encodings say of their places.

import { uniform } from "./random.js";

const TRAINED = 14;

/** Frequencies base^(−4i/d) for i < d/4: those of one axis of a 2-D encoding. */
const perAxis = (dim, base) =>
  Array.from({ length: dim / 4 }, (_, i) => Math.pow(base, (-4 * i) / dim));

/**
 * RoPE-Mixed's frequencies of one head as it begins: half of the pairs look in a random direction,
 * half across it. [[f_x, f_y], …].
 */
export function mixedFrequencies(dim, head) {
  const angle = 2 * Math.PI * uniform(4000 + head)();
  return [angle, angle + Math.PI / 2].flatMap((direction) =>
    perAxis(dim, 10).map((size) => [Math.cos(direction) * size, Math.sin(direction) * size]),
  );
}

/** Pairs [ω_x, ω_y]: each angle of a patch at (y, x) is x·ω_x + y·ω_y. */
function directions(kind, dim, size, head) {
  if (kind === "mixed") return mixedFrequencies(dim, head);
  if (kind === "flat") {
    return Array.from({ length: dim / 2 }, (_, i) => {
      const omega = Math.pow(10000, (-2 * i) / dim);
      return [omega, omega * size];
    });
  }
  const along = perAxis(dim, kind === "sine" ? 10000 : 100);
  return [...along.map((omega) => [omega, 0]), ...along.map((omega) => [0, omega])];
}

/** What coordinates are multiplied with: 1, or trained / actual size. */
export const stretch = ({ gridKind, gridSize, coordinates }) =>
  coordinates === "stretched" && gridKind !== "flat" ? TRAINED / gridSize : 1;

/** How alike two patches are that lie so many rows and columns apart: Σ cos over the pairs / count. */
export function alikeness(how, dim, rows, columns) {
  const scale = stretch(how);
  const all = directions(how.gridKind, dim, how.gridSize, how.gridHead);
  const sum = all.reduce(
    (total, [x, y]) => total + Math.cos(scale * (columns * x + rows * y)),
    0,
  );
  return sum / all.length;
}

/** How alike each patch of the grid is to the chosen one, row by row. */
export function alikenessMap(how, dim) {
  const { gridSize: size, patchRow, patchColumn } = how;
  // Only differences count, so each is worked out once.
  const seen = new Map();
  const of = (rows, columns) => {
    const key = `${rows} ${columns}`;
    if (!seen.has(key)) seen.set(key, alikeness(how, dim, rows, columns));
    return seen.get(key);
  };
  return Array.from({ length: size }, (_, r) =>
    Array.from({ length: size }, (_, c) => of(r - patchRow, c - patchColumn)),
  );
}
