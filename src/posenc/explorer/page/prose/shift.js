// What section 6 says.

import { counted, fixed, power } from "../interface/numbers.js";
import { largestError, shiftResidual } from "../math/shift.js";
import { frequency } from "../math/sincos.js";
import { channelsOf, frequenciesOf, pairAt, pairsOf } from "../state/facts.js";

const MOST_SINES = 200_000;
const POSITIONS = 50;

/** Whether one matrix moves every position, and what it does. */
export function aboutMap({ convention, dim, base }) {
  const { pairs, single } = pairsOf(convention, dim);
  if (pairs.length) {
    const serve = base === 1 ? "; at base 1 any other's would do" : "";
    const alone = single.length
      ? ` The last sine, which has no cosine of its own, is left out of it${serve}.`
      : "";
    return (
      "To go k positions on, every pair turns by kω: one matrix M, the same at every position. So a " +
      `linear layer can learn to look k tokens back.${alone}`
    );
  }
  return base === 1
    ? "To go k positions on, a pair turns by kω. This convention promises no pairs; at base 1, where all channels have one frequency, a matrix exists by accident."
    : "To go k positions on, a pair turns by kω. This convention has no pairs: no sine has a cosine of its own frequency, and no matrix moves every position.";
}

/** The cursor's dimension where it has no pair. */
export function aboutAlone({ convention, dim, base, dimension }) {
  if (channelsOf(convention, dim)[dimension].kind === "zero") {
    return `Dimension ${dimension} holds zeros, at every position: no shift changes it.`;
  }
  return base === 1
    ? `Dimension ${dimension} has no partner in this convention, so no shift of it is shown; at base 1 any sine and cosine would move it.`
    : `Dimension ${dimension} has no partner of its frequency: exact shift unavailable for it.`;
}

/** The largest error of the shift over the table. */
export function aboutError({ convention, dim, base, length, offset }) {
  const all = frequenciesOf(convention, dim, base);
  if (!all.length) {
    return base === 1
      ? "This convention promises no pairs, so none is shown."
      : "This convention has no pairs: no M works at every position.";
  }
  const count = Math.max(1, Math.min(length, Math.floor(MOST_SINES / all.length)));
  const worst = largestError(all, offset, count);
  const single = pairsOf(convention, dim).single.length ? " of the pairs" : "";
  const over = `Over ${counted(count, "position")} and ${counted(all.length, "pair")} the largest error of M · PE(p) against PE(p + k)${single} is `;
  return worst ? `${over}${power(worst)}: rounding.` : `${over}0.`;
}

/** What a linear map makes of the cursor's sine alone, and of sine and cosine together. */
export function aboutSines(state) {
  const { convention, dim, dimension } = state;
  const pair = pairAt(state);
  if (channelsOf(convention, dim)[dimension].kind === "zero") {
    return "This column holds zeros, and there is nothing to move. Put the cursor on a pair.";
  }
  if (!pair) {
    return "This dimension has no partner in this convention. Put the cursor on a pair to see what its cosine is for.";
  }
  const omega = frequency(state.base, pair);
  const offset = Math.max(1, Math.min(Math.abs(state.offset), POSITIONS));
  const over = (f) => Array.from({ length: POSITIONS + offset }, (_, p) => f(p * omega));
  const [sine, both] = [[over(Math.sin)], [over(Math.sin), over(Math.cos)]];
  return (
    `Over ${POSITIONS} positions the best linear map for k = ${offset} leaves ` +
    `${fixed(100 * shiftResidual(sine, offset), 1)} % of the cursor's sine alone, and ` +
    `${power(shiftResidual(both, offset))} of sine and cosine together: a sine cannot turn, a point on a circle can.`
  );
}
