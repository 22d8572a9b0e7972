// What section 3 says.

import { counted, fixed, grouped, significant } from "../interface/numbers.js";
import { CONVENTIONS } from "../math/conventions.js";
import { value } from "../math/sincos.js";
import { channelsOf, pairAt, wavelengthsOf } from "../state/facts.js";

const finite = ({ base, convention, dim }) =>
  wavelengthsOf(convention, dim, base).filter(Number.isFinite);

const isZero = ({ convention, dim, dimension }) =>
  channelsOf(convention, dim)[dimension].kind === "zero";

/** What the first lane shows. */
export function aboutLanes(state) {
  const first = pairAt(state)
    ? "the cursor's pair"
    : isZero(state)
      ? "the cursor's column of zeros"
      : "the cursor's dimension, which has no partner";
  return `The first lane is ${first}; pin others to keep them.`;
}

/** The numbers under the cursor. */
export function aboutCurves(state) {
  const pair = pairAt(state);
  const { base, convention, dim, dimension, position } = state;
  const all = channelsOf(convention, dim);
  const at = (j) => value(all[j], base, position + CONVENTIONS[convention].first);
  if (isZero(state)) return `Dimension ${dimension} is 0 at every position.`;
  if (!pair) {
    return `Dimension ${dimension} has no partner. At position ${position} it is ${fixed(at(dimension))}.`;
  }
  const [s, c] = [at(pair.sin), at(pair.cos)];
  return `At position ${position} the pair is (${fixed(s)}, ${fixed(c)}); its squares add up to ${fixed(s * s + c * c)}.`;
}

/** How many dimensions complete a turn. */
export function aboutWavelengths(state) {
  const found = finite(state);
  const full = found.filter((lambda) => lambda <= state.length).length;
  const within = `within L = ${grouped(state.length)}`;
  if (!full) {
    return `None of ${counted(found.length, "dimension")} completes a turn ${within} (open dots): none of them begins again.`;
  }
  if (full === found.length) {
    return `All of ${counted(found.length, "dimension")} turn at least once ${within} (filled dots).`;
  }
  return (
    `${grouped(full)} of ${counted(found.length, "dimension")} turn at least once ${within} ` +
    `(filled dots); the others never begin again.`
  );
}

/** From the shortest to the longest wavelength. */
export function aboutBase(state) {
  const found = finite(state);
  const [shortest, longest] = [Math.min(...found), Math.max(...found)];
  const base = `With n = ${grouped(state.base)}`;
  return shortest === longest
    ? `${base} and d = ${state.dim} there is one wavelength, ${significant(shortest)} positions.`
    : `${base} the wavelengths run from ${significant(shortest)} to ${significant(longest)} positions.`;
}
