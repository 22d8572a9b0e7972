// What section 5 says.

import { counted, fixed, grouped, significant, whole } from "../interface/numbers.js";
import { closest, distance, dot, product } from "../math/similarity.js";
import { gramOf, pairsOf, rowOf, rowsOf, wavelengthsOf } from "../state/facts.js";

const productsOf = ({ convention, dim, base, length }) => gramOf(convention, dim, base, length);

/** Whether the distance alone decides: what depends on p + q is nothing but rounding. */
export function distanceDecides(state) {
  const { sum } = productsOf(state);
  return !sum || sum.every((s) => Math.abs(s) < 1e-9);
}

/** What the matrix of dot products looks like, and why. */
export function aboutDiagonals(state) {
  const { convention, dim, base, position } = state;
  if (distanceDecides(state)) {
    const [how, many] = pairsOf(convention, dim).pairs.length
      ? ["in pairs", ""]
      : ["of one frequency", ", as many of each,"];
    return `With sines and cosines ${how}${many} it depends on the distance alone, so the matrix is constant along its diagonals and one curve tells all of it.`;
  }
  const why =
    base === 1
      ? "Here all have one frequency, and sines and cosines are not equally many"
      : "Here not every sine has a cosine of its own frequency";
  return `${why}, so it depends on both positions: the matrix is not constant along its diagonals, and the curve is that of p = ${position} alone.`;
}

/** The two chosen positions. */
export function aboutTwo(state) {
  const { position, offset, length } = state;
  const [a, b] = [rowOf(state, position), rowOf(state, position + offset)];
  const second = position + offset;
  const outside =
    second < 0 || second >= length ? ` Position ${whole(second)} lies outside the figure.` : "";
  const most = Math.sqrt(dot(a, a) * dot(b, b));
  return (
    `PE(${position}) · PE(${whole(second)}) = ${fixed(dot(a, b))}, a cosine of ` +
    `${fixed(dot(a, b) / most)}; their distance is ${fixed(distance(a, b))}.${outside}`
  );
}

/** The two nearest positions of all. */
export function aboutClosest(state) {
  const { first, second } = closest(productsOf(state), state.length, () => rowsOf(state));
  const apart = distance(rowOf(state, first), rowOf(state, second));
  const near = apart < 0.2 ? " A near-collision." : "";
  return `Closest of all ${grouped(state.length)} positions: ${first} and ${second}, ${fixed(apart)} apart.${near}`;
}

/** Whether the farther position is always the less similar one: looked for from the cursor on. */
export function aboutRise(state) {
  const { position, length } = state;
  const found = productsOf(state);
  const [after, before] = [length - 1 - position, position];
  const [reach, step] = after >= before ? [after, 1] : [before, -1];
  const profile = Array.from({ length: reach + 1 }, (_, k) =>
    product(found, position, position + step * k),
  );
  const k = profile.findIndex((v, i) => i < reach && profile[i + 1] > v + 1e-9);
  const way = step > 0 ? "after" : "before";
  if (k < 0) {
    return `At this setting it is: the profile falls all the way, ${counted(reach, "position")} ${way} p = ${position}.`;
  }
  const rise = `from ${fixed(profile[k])} to ${fixed(profile[k + 1])}`;
  return k
    ? `No. The profile falls at first; ${counted(k, "position")} ${way} p = ${position} it rises again, ${rise}. It is a sum of cosines, and those return.`
    : `No. From p = ${position} the profile rises at once, ${rise}: rows of different lengths make it so.`;
}

/** Why two positions never coincide. */
export function aboutUniqueness({ convention, dim, base }) {
  const shortest = Math.min(...wavelengthsOf(convention, dim, base));
  return (
    `No. A turn of the fastest column takes ${significant(shortest)} positions, and no whole number of ` +
    `positions is a whole number of such turns: two positions never coincide, however far apart. What ` +
    `shrinks is the distance of the nearest two: it is the closest pair above. With base 1 all columns ` +
    `are as fast as the fastest one, and 44 positions are very nearly seven turns.`
  );
}
