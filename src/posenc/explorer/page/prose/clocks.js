// What section 4 says, and the few pairs that it shows.

import { enough, fixed, grouped, significant } from "../interface/numbers.js";
import { geometric } from "../math/scaling.js";

/** Four pairs: few enough for each hand to stand beside its bit. */
const WIDTH = 8;

const TURN = 2 * Math.PI;

/** The frequencies of the hands, the fastest first. */
export const hands = ({ clockBase }) => geometric(WIDTH, clockBase);

/** How much slower each hand is than the one before. */
export function aboutHands(state) {
  const omegas = hands(state);
  const ratio = omegas[0] / omegas[1];
  const base = `With base ${grouped(state.clockBase)}`;
  if (ratio === 1) return `${base} all hands turn alike, where each bit is half as fast as the one before.`;
  if (Math.abs(ratio - 2) < 1e-9) {
    return `${base} each hand is half as fast as the one before, as each bit is.`;
  }
  const digits = enough((d) => ![1, 2].includes(Number(ratio.toPrecision(d))), 3);
  return (
    `${base} each hand is ${significant(ratio, digits)} times slower than the one before, where each bit ` +
    `is half as fast: base 16 makes them alike.`
  );
}

/** How far the hands have come, and the same in binary. */
export function aboutClocks(state) {
  const omegas = hands(state);
  const { position } = state;
  const turns = (omega) => significant((position * omega) / TURN, 3);
  const made =
    omegas[0] === omegas.at(-1)
      ? `every hand has made ${turns(omegas[0])} turns`
      : `the fastest hand has made ${turns(omegas[0])} turns and the slowest ${turns(omegas.at(-1))}`;
  return (
    `At position ${grouped(position)} ${made}. In binary: ${position.toString(2)}. The slowest cosine ` +
    `is ${fixed(Math.cos(position * omegas.at(-1)))}.`
  );
}
