// The angles that a pair meets in a length, and those that it never met in training.

const TURN = 2 * Math.PI;

/**
 * What a pair of frequency `plain` met in `trained` positions, and what it will at `target` positions
 * with the frequency `changed`: arcs from 0 in radians, at most a turn, and in words which they are.
 *
 * "whole": every angle was met; "within": no farther than was met; "new": angles never met.
 */
export function arcs(plain, changed, trained, target) {
  const [met, reached] = [trained * plain, target * changed];
  const kind = met >= TURN ? "whole" : reached <= met * (1 + 1e-9) ? "within" : "new";
  const [before, after] = [Math.min(met, TURN), Math.min(reached, TURN)];
  return { kind, before, after, fresh: kind === "new" ? after - before : 0 };
}

/** How far the angle of a position is off: rounded to bfloat16 first, or all in float32. */
export const angleErrors = {
  bfloat16: (position, omega, toBfloat16) => Math.abs(toBfloat16(position) - position) * omega,
  float32: (position, omega) =>
    Math.abs(Math.fround(Math.fround(position) * Math.fround(omega)) - position * omega),
};

/**
 * a² Σ cos(distance·ω_i) over the number of pairs: the score of a query that meets its own key.
 *
 * The attention factor a is in cosines and sines of both of them.
 */
export const ownScore = (frequencies, distance, attention = 1) =>
  (attention ** 2 * frequencies.reduce((sum, omega) => sum + Math.cos(distance * omega), 0)) /
  frequencies.length;

/** About `count` whole numbers from 1 to `most`, equally far apart in ratio. */
export function spread(most, count) {
  const found = new Set();
  for (let i = 0; i <= count; i++) found.add(Math.round(most ** (i / count)));
  return [...found];
}
