// Questions about the state that stands, and their answers: computed, never written down.

import { counted, fixed, grouped, significant, whole } from "../interface/numbers.js";
import { slopes } from "../math/alibi.js";
import { toBfloat16 } from "../math/rounding.js";
import { frequency, wavelength } from "../math/sincos.js";
import { bucket } from "../math/t5.js";

const pairOf = ({ dim }) => (dim >= 4 ? 1 : 0);
const omegaOf = (state) => frequency(state.base, { top: 2 * pairOf(state), bottom: state.dim });
const degrees = ({ offset }) => (((offset * 180) / Math.PI) % 360 + 360) % 360;
const wholeCircles = ({ dim, base, trained }) =>
  Array.from({ length: dim >> 1 }, (_, i) => frequency(base, { top: 2 * i, bottom: dim & ~1 })).filter(
    (omega) => trained * omega >= 2 * Math.PI,
  ).length;

/** Each: ask(state), answer(state), within (how far off is right), hint(state), section. */
export const EXERCISES = [
  {
    section: "curves",
    ask: (state) =>
      `The paper's encoding with base ${grouped(state.base)} and ${state.dim} dimensions: how many positions does one turn of pair ${pairOf(state)} take?`,
    answer: (state) => wavelength(omegaOf(state)),
    within: (answer) => 0.01 * answer,
    hint: (state) => `2π divided by ω = n^(−2i/d), with i = ${pairOf(state)}.`,
  },
  {
    section: "matrix",
    ask: ({ position }) =>
      `The paper's PE(${position}, 0), to two decimals?`,
    answer: ({ position }) => Math.sin(position),
    within: () => 0.0051,
    hint: ({ position }) => `Column 0 is the sine of the position itself, in radians: sin ${position}.`,
  },
  {
    section: "shift",
    ask: ({ offset }) =>
      `Moving on by ${whole(offset)} turns the fastest pair by how many degrees, between 0 and 360?`,
    answer: degrees,
    within: () => 0.6,
    hint: ({ offset }) =>
      `Its frequency is one radian a position: ${whole(offset)} radians, and whole turns do not count.`,
  },
  {
    section: "similarity",
    ask: ({ dim }) =>
      `What is PE(p) · PE(p) in the paper's encoding with ${2 * Math.ceil(dim / 2)} dimensions?`,
    answer: ({ dim }) => Math.ceil(dim / 2),
    within: () => 1e-9,
    hint: () => "Each pair gives sin² + cos² = 1.",
  },
  {
    section: "biases",
    ask: ({ heads }) => `ALiBi with ${counted(heads, "head")}: what is the slope of head 0?`,
    answer: ({ heads }) => slopes(heads)[0],
    within: (answer) => 0.01 * answer,
    hint: ({ heads }) =>
      `Of a power of two H the slopes are 2^(−8(h + 1)/H); take the largest power of two that is no more than ${heads}.`,
  },
  {
    section: "relatives",
    ask: ({ offset }) =>
      `T5 with 32 buckets, past keys only: into which bucket falls a key ${counted(Math.abs(offset), "position")} back?`,
    answer: ({ offset }) => bucket(Math.abs(offset), { bidirectional: false }),
    within: () => 0,
    hint: () => "Distances below 16 have a bucket each; beyond, 16 buckets share what lies below 128, and the last takes the rest.",
  },
  {
    section: "long",
    ask: ({ dim, base, trained }) =>
      `A head of ${dim & ~1} channels with base ${grouped(base)}, trained on ${grouped(trained)} positions: how many of its pairs met the whole circle?`,
    answer: wholeCircles,
    within: () => 0,
    hint: () => "Those whose wavelength is no longer than the trained length. Section 11 counts them.",
  },
  {
    section: "long",
    ask: ({ trained }) => `What does position ${grouped(trained + 1)} become in bfloat16?`,
    answer: ({ trained }) => toBfloat16(trained + 1),
    within: () => 0,
    hint: () => "Eight significant bits: above 256 only every second whole number, above 512 every fourth; ties to the even one.",
  },
  {
    section: "decoder",
    ask: ({ pads, decoderStep }) =>
      `A request of one document has ${counted(pads, "pad")} on its left. What is the position of the token in column ${pads + decoderStep}?`,
    answer: ({ decoderStep }) => decoderStep,
    within: () => 0,
    hint: () => "Counted from the first token that is none of the pads.",
  },
  {
    section: "grid",
    ask: ({ gridSize }) =>
      `A ${gridSize} × ${gridSize} grid numbered row after row: how many positions further on stands the patch below?`,
    answer: ({ gridSize }) => gridSize,
    within: () => 0,
    hint: () => "As many as a row has patches.",
  },
];

const THOUSANDS = /^-?\d{1,3}(,\d{3})+(\.\d+)?$/;

/** What a reader may have meant: a comma stands before decimals, or between thousands. */
export const numbersIn = (text) => {
  const plain = text.trim().replaceAll("−", "-").replace(/[\s\u2009]/g, "");
  const written = [plain.replace(",", ".")];
  if (THOUSANDS.test(plain)) written.push(plain.replaceAll(",", ""));
  return written.map((each) => (each === "" ? NaN : Number(each))).filter((x) => !Number.isNaN(x));
};

const told = (answer) => (Number.isInteger(answer) ? grouped(answer) : Math.abs(answer) < 1 ? fixed(answer) : significant(answer, 5));

/** { right, words }: what is said of an answer. */
export function judged({ answer, within, hint }, state, text) {
  const given = numbersIn(text);
  if (!given.length) return { right: false, words: "Type a number, as 12 or −0.54." };
  const right = answer(state);
  return given.some((number) => Math.abs(number - right) <= within(right))
    ? { right: true, words: `Right: ${told(right)}.` }
    : { right: false, words: `Not yet. ${hint(state)}` };
}

/** The answer with its reason. */
export const shown = ({ answer, hint }, state) => `${told(answer(state))}. ${hint(state)}`;
