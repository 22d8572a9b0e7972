// What section 7 says.

import { counted, fixed } from "../interface/numbers.js";
import { norm } from "../math/matrices.js";
import { SENTENCE_DIM } from "../state/defaults.js";
import { sumOf } from "../state/facts.js";

const STILL = 0.1;

/** How long rows of embedding and encoding are. */
export function aboutNorms(state) {
  const { embeddings, encoding } = sumOf(state);
  const mean = (rows) => rows.reduce((all, r) => all + norm(r), 0) / rows.length;
  return (
    `A row of the encoding has length √(${SENTENCE_DIM}/2) = ${fixed(norm(encoding[0]), 2)}, an embedding ` +
    `${fixed(mean(embeddings), 2)} on average, ${state.scaled ? "with" : "without"} the factor √d.`
  );
}

/** How many columns the places leave to the words. */
export function aboutStill(state) {
  const { all, encoding } = sumOf(state);
  if (all.length === 1) return "With one token no column changes at all: give two or more.";
  const still = encoding[0].filter((_, j) => {
    const column = encoding.map((r) => r[j]);
    return Math.max(...column) - Math.min(...column) < STILL;
  }).length;
  const over = `over ${counted(all.length, "token")}`;
  if (!still) {
    return `Here, ${over}, none of the ${SENTENCE_DIM} columns changes by less than ${STILL}: word and place share all of them.`;
  }
  return (
    `And ${over} ${still} of the ${SENTENCE_DIM} columns change by less than ${STILL}: there the word ` +
    `keeps its place to itself.`
  );
}

/** What to look at to see what √d is for. */
export const aboutScale = ({ scaled }) =>
  scaled
    ? "Without the factor the place would drown the word: switch it off and look at the bars."
    : "Without the factor the place drowns the word: it is off now, look at the bars.";
