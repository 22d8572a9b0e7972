// T5: distances sorted into buckets, exact for near ones and logarithmic for far ones.

/**
 * The bucket of a distance, query position − key position.
 *
 * Half of the buckets of one side hold one distance each; the others grow by a constant ratio up to
 * `furthest`. Their borders are found in whole numbers, since distances stand exactly on them.
 */
export function bucket(distance, { buckets = 32, furthest = 128, bidirectional = true } = {}) {
  const side = bidirectional ? buckets / 2 : buckets;
  const after = bidirectional && distance < 0 ? side : 0;
  const away = bidirectional ? Math.abs(distance) : Math.max(distance, 0);
  const exact = side / 2;
  if (away < exact) return after + away;
  let step = 0;
  while (step + 1 < side - exact && reaches(away, step + 1, exact, furthest, side - exact)) step++;
  return after + exact + step;
}

/** Whether (away / exact)^steps ≥ (furthest / exact)^step, without a logarithm. */
function reaches(away, step, exact, furthest, steps) {
  const [a, e, f] = [BigInt(away), BigInt(exact), BigInt(furthest)];
  return a ** BigInt(steps) * e ** BigInt(step) >= f ** BigInt(step) * e ** BigInt(steps);
}
