// What section 1 says of the five codes: every claim is one of the four answers.

import { counted, fixed, power, significant } from "../interface/numbers.js";
import { codes, questions } from "../math/ladder.js";
import { orderEffect } from "../math/order.js";
import { MODEL } from "../state/defaults.js";

/** The length and the offset that the answers are for: long enough for all to mean something. */
export function setting({ length, offset }) {
  const shown = Math.min(Math.max(length, 24), 200);
  return { length: shown, offset: Math.min(Math.max(Math.abs(offset), 1), shown >> 1) };
}

/** Two positions this far apart are told apart easily. */
export const FAR = 0.1;

/** The four answers of one code in the state. */
export const answers = (state, index) => {
  const { length, offset } = setting(state);
  return questions(codes(state.base)[index], length, offset);
};

/** What is good and bad about the chosen code. */
export function aboutCode(state) {
  const { length, offset } = setting(state);
  const { nearest, residual } = answers(state, state.code);
  const near = `positions ${nearest.first} and ${nearest.second} are ${fixed(nearest.distance)} apart`;
  const map = `the best linear map for k = ${offset} misses ${fixed(100 * residual, 1)} %`;
  return [
    () =>
      "Counting is unbounded: far positions drown the embedding, and a length never trained on brings numbers never seen.",
    () =>
      `Divided by the length it is bounded, but the same position has another code in a longer text, and neighbors come ever closer: ${fixed(nearest.distance)} at L = ${length}.`,
    () =>
      `One sine is bounded and the same at every length, but different positions nearly share a value (${near}), and no linear map moves it: ${map}.`,
    () =>
      "With its cosine beside it a fixed offset is a rotation, whatever the position. " +
      (nearest.distance < FAR
        ? `But positions nearly a whole number of turns apart nearly meet: ${near}.`
        : `Within ${counted(length, "position")} none come nearer than ${fixed(nearest.distance)}; but farther on, nearly a whole number of turns apart, they do.`),
    () =>
      state.base === 1
        ? `Four pairs, but base 1 gives all of them one wavelength: no better than a single pair (${near}).`
        : nearest.distance < FAR
          ? `Many pairs of different wavelengths: bounded, the same at every length, and movable; with this base they differ so little that ${near}.`
          : "Many pairs of different wavelengths: bounded, the same at every length, movable, and far apart. This is the encoding.",
  ][state.code]();
}

/** What two orders of three words are to the encoder. */
export function aboutOrder({ base }) {
  const { without, with: told } = orderEffect(["lion", "kills", "tiger"], [2, 1, 0], base, MODEL);
  const nothing = without ? `${power(without)} without an encoding: rounding` : "exactly 0 without an encoding";
  return (
    `Run through the encoder of section 9, the vector of a word differs between the two orders by ` +
    `${nothing}. With it, by ${significant(told, 3)}.`
  );
}
