// ALiBi: a penalty proportional to the distance, with a slope for each head.

const powers = (heads) =>
  Array.from({ length: heads }, (_, h) => Math.pow(2, (-8 * (h + 1)) / heads));

/** The authors' slopes: for other numbers than powers of two, every second one of the next power. */
export function slopes(heads) {
  const lower = 2 ** Math.floor(Math.log2(heads));
  const between = powers(2 * lower).filter((_, h) => h % 2 === 0);
  return [...powers(lower), ...between.slice(0, heads - lower)];
}

/** −m·|distance|. */
export const bias = (slope, distance) => -slope * Math.abs(distance);
