// What section 2 says: words that follow from the state, so that none of them can turn false.

import { counted, fixed, grouped, power, significant, whole } from "../interface/numbers.js";
import { CONVENTIONS } from "../math/conventions.js";
import { distinctInBfloat16, toBfloat16 } from "../math/rounding.js";
import { dot } from "../math/similarity.js";
import { block, frequency, value, wavelength } from "../math/sincos.js";
import { channelsOf, distinctRowsOf, pairsOf, valueAt } from "../state/facts.js";

/** Which columns belong together, and how their wavelengths run. */
export function aboutColumns({ convention, dim, base }) {
  const { pairs, single, zero } = pairsOf(convention, dim);
  if (!pairs.length) {
    return base === 1
      ? "Sines and cosines alternate, and base 1 gives all of them the same wavelength."
      : "Sines and cosines alternate, each with a wavelength of its own: short on the left, long on the right.";
  }
  const beside = Math.abs(pairs[0].cos - pairs[0].sin) === 1;
  const half = Math.abs(pairs[0].cos - pairs[0].sin);
  const left = pairs[0].sin < pairs[0].cos ? ["a sine", "a cosine"] : ["a cosine", "a sine"];
  const who =
    pairs.length === 1
      ? `Columns 0 and 1 are one pair, ${left[0]} and ${left[1]} of the same wavelength`
      : beside
        ? `Every two columns are one pair, ${left[0]} and ${left[1]} of the same wavelength`
        : `Columns j and j + ${half} are one pair, ${left[0]} on the left and ${left[1]} of the same wavelength on the right`;
  const run =
    pairs.length === 1
      ? ""
      : base === 1
        ? "; base 1 makes all wavelengths alike"
        : beside
          ? ": short on the left, long on the right"
          : "; in each half short wavelengths stand left and long ones right";
  const last = single.length
    ? " The last column is a sine alone."
    : zero.length
      ? " The last column holds zeros."
      : "";
  return `${who}${run}.${last}`;
}

/** The formula of the convention, where it is not the paper's. */
export function aboutConvention({ convention }) {
  const { formula } = CONVENTIONS[convention];
  return convention === "paper" ? "" : `That is the paper's. The one chosen: ${formula}.`;
}

/** What rounding the finished number to the chosen dtype has cost. */
function aboutRounding(state) {
  const { dtype, position, dimension } = state;
  if (dtype === "float64") return "";
  const exact = valueAt({ ...state, dtype: "float64" }, position, dimension);
  const off = Math.abs(valueAt(state, position, dimension) - exact);
  if (!off) return ` Rounded once to ${dtype}, the number stays as it is.`;
  return ` Rounded once to ${dtype}, the number is off by ${power(off)}.`;
}

/** The cursor's column: what it is, and how often it turns. */
export function aboutWavelength(state) {
  const { convention, dim, base, dimension, length } = state;
  const channel = channelsOf(convention, dim)[dimension];
  if (channel.kind === "zero") return `Dimension ${dimension} holds zeros: it has no wavelength.`;
  const lambda = wavelength(frequency(base, channel));
  const turns = length / lambda;
  return (
    `Dimension ${dimension} is a ${channel.kind === "sin" ? "sine" : "cosine"} of wavelength ` +
    `${significant(lambda)} positions: ${significant(turns, 3)} turns in ${grouped(length)} positions.` +
    aboutRounding(state)
  );
}

const STILL = 0.1;
const LOOKED_AT = 200;

/** How many columns of a convention hardly move over the first positions. */
function stillColumns(convention, { dim, base }, count) {
  const all = channelsOf(convention, dim);
  const values = block(all, base, CONVENTIONS[convention].first, count);
  return all.filter((_, j) => {
    let [least, most] = [Infinity, -Infinity];
    for (let p = 0; p < count; p++) {
      const v = values[p * dim + j];
      if (v < least) least = v;
      if (v > most) most = v;
    }
    return most - least < STILL;
  }).length;
}

/** What reading i as the column does to the matrix. */
export function aboutDoubleExponent(state) {
  const { dim, base, length } = state;
  const count = Math.min(length, LOOKED_AT);
  const [paper, double] = ["paper", "double_exponent"].map((name) =>
    stillColumns(name, state, count),
  );
  const over = `over ${counted(count, "position")} at n = ${grouped(base)}`;
  return double > paper
    ? `${double} of its ${dim} columns change by less than ${STILL} ${over}; of the paper's it is ${paper}.`
    : `With these numbers it hardly shows: ${double} of its ${dim} columns change by less than ${STILL} ${over}, and ${paper} of the paper's.`;
}

/** Alternating columns against halves: the same products. */
export function aboutLayouts({ dim, base, position, offset }) {
  const even = dim - (dim % 2);
  const [a, b] = ["paper", "concatenated"].map((name) => {
    const all = channelsOf(name, even);
    const at = (p) => all.map((channel) => value(channel, base, p));
    return dot(at(position), at(position + offset));
  });
  return (
    `at d = ${even}, PE(${position}) · PE(${whole(position + offset)}) is ${fixed(a)} alternating ` +
    `and ${fixed(b)} in halves.`
  );
}

/** Positions held in bfloat16, against a table that is rounded once. */
export function aboutBfloat16({ length, position, convention, dim, base }) {
  const held = toBfloat16(position);
  const here =
    held === position
      ? `your position ${grouped(position)} still fits`
      : `your position ${grouped(position)} becomes ${grouped(held)}`;
  const kept = distinctInBfloat16(length);
  const apart =
    kept === length
      ? `all ${grouped(length)} positions stay apart, but from 256 on neighbors are one`
      : `of ${counted(length, "position")} ${grouped(kept)} stay apart`;
  const rows = distinctRowsOf(convention, dim, base, length);
  const once =
    rows === length
      ? `all ${grouped(length)} positions keep a row of their own`
      : `${grouped(rows)} of ${counted(length, "position")} keep a row of their own`;
  return (
    `257 becomes ${toBfloat16(257)}, ${here}, and ${apart}. Compute in float64 and round the ` +
    `finished table once: ${once}.`
  );
}
