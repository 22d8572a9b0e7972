// Five ways to write a position down, and four questions asked of each.

import { shiftResidual } from "./shift.js";
import { distance } from "./similarity.js";

const sinesAndCosines = (count, base) =>
  Array.from({ length: count }, (_, i) => Math.pow(base, -i / count)).flatMap((omega) => [
    (p) => Math.sin(p * omega),
    (p) => Math.cos(p * omega),
  ]);

// Differences below this are rounding: the first of equally near pairs is named.
const CLEAR = 1e-12;

const over = (length, of) => Array.from({ length }, (_, p) => of(p));

/** Each code has a function of position and length for every number of its code. */
export const codes = (base) => [
  { name: "count", formula: "p", numbers: [(p) => p] },
  { name: "divide by the length", formula: "p / L", numbers: [(p, length) => p / length] },
  { name: "one sine", formula: "sin p", numbers: [Math.sin] },
  { name: "a pair", formula: "sin p, cos p", numbers: sinesAndCosines(1, base) },
  {
    name: "many pairs",
    formula: "sin(p ω), cos(p ω), four ω",
    numbers: sinesAndCosines(4, base),
  },
];

/** The code of every position, column by column. */
export const columnsOf = (code, length) =>
  code.numbers.map((number) => over(length, (p) => number(p, length)));

/**
 * The four answers of one code at one length.
 *
 * bound: largest |value|. nearest: smallest distance of two positions. drift: largest change of the
 * same positions when the text is twice as long. residual: what the best linear map for the offset
 * leaves, as a share.
 */
export function questions(code, length, offset) {
  const columns = columnsOf(code, length);
  const longer = columnsOf(code, 2 * length);
  const rows = over(length, (p) => columns.map((column) => column[p]));
  let nearest = { distance: Infinity, first: 0, second: 1 };
  for (let p = 0; p < length; p++) {
    for (let q = p + 1; q < length; q++) {
      const apart = distance(rows[p], rows[q]);
      if (apart < nearest.distance - CLEAR) nearest = { distance: apart, first: p, second: q };
    }
  }
  return {
    bound: largest(columns.flat()),
    nearest,
    drift: largest(columns.flatMap((column, c) => column.map((x, p) => x - longer[c][p]))),
    residual: shiftResidual(columns, offset),
  };
}

const largest = (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
