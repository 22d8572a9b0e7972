// What section 14 says of a patch and whom it resembles.

import { counted, fixed } from "../interface/numbers.js";
import { alikeness, stretch } from "../math/patches.js";
import { GRID_DIM } from "../state/defaults.js";
import { patchMapOf } from "../state/facts.js";

const at = (state, rows, columns) => alikeness(state, GRID_DIM, rows, columns);

/** The kind in words. */
export const aboutGridKind = ({ gridKind, gridSize, gridHead }) =>
  ({
    flat: `One number a patch, row after row: one step down is ${gridSize} positions, and the end of a row stands next to the beginning of the next.`,
    sine: "Half of the columns are sines and cosines of x, half of y, added to the embeddings (base 10000, as in MAE).",
    axial: "Half of a head's pairs turn by x, half by y (base 100, as in RoPE-ViT).",
    mixed: `Every pair of head ${gridHead} turns by a mixture of x and y (RoPE-Mixed); its two directions are seeded random, as before training.`,
  })[gridKind];

/** The neighbors of the patch. */
export function aboutNeighbors(state) {
  const { gridSize, patchRow, patchColumn } = state;
  const [down, across] = [patchRow < gridSize - 1 ? 1 : -1, patchColumn < gridSize - 1 ? 1 : -1];
  const values = [at(state, 0, across), at(state, down, 0), at(state, down, across)].map((x) => fixed(x));
  return (
    `Patch (${patchRow}, ${patchColumn}) is ${values[0]} like the patch to its ${across > 0 ? "right" : "left"}, ` +
    `${values[1]} like the one ${down > 0 ? "below" : "above"} and ${values[2]} like the one between them; it is 1 like itself.`
  );
}

/** Who resembles it most and least. */
export function aboutKin(state) {
  const { patchRow, patchColumn } = state;
  const others = patchMapOf(state).flatMap((line, r) =>
    line.flatMap((value, c) => (r === patchRow && c === patchColumn ? [] : [{ r, c, value }])),
  );
  const told = (best) => {
    const equal = others.filter(({ value }) => Math.abs(value - best) < 1e-9);
    const more = equal.length > 1 ? ` and ${counted(equal.length - 1, "other")} as much` : "";
    return `(${equal[0].r}, ${equal[0].c})${more}, ${fixed(best)}`;
  };
  const values = others.map(({ value }) => value);
  return `Most like it: ${told(Math.max(...values))}. Least like it: ${told(Math.min(...values))}.`;
}

/** Whether the direction matters. */
export function aboutDirections(state) {
  const far = 3;
  const values = [
    [0, far],
    [far, 0],
    [far, far],
    [far, -far],
  ].map(([rows, columns]) => at(state, rows, columns));
  const [across, down, one, other] = values.map((x) => fixed(x));
  const same = Math.abs(values[2] - values[3]) < 1e-9;
  return (
    `Three steps across leave ${across}, three down ${down}. On the diagonals they leave ${one} and ${other}: ` +
    (same ? "both diagonals fall alike." : "the two diagonals differ.")
  );
}

/** What another resolution does. */
export function aboutResolution(state) {
  const { gridKind, gridSize } = state;
  const own = fixed(at({ ...state, gridSize: 14, coordinates: "own" }, 1, 0));
  const here = fixed(at(state, 1, 0));
  const size = `${gridSize} × ${gridSize}`;
  if (gridKind === "flat") {
    return gridSize === 14
      ? `Trained on 14 × 14 the patch below is ${own}; at another size a step down is another number of positions.`
      : `Trained on 14 × 14 the patch below was ${own}; at ${size} it is ${here}: every step down is ${gridSize} positions and no longer 14. Stretching does not help a single number.`;
  }
  if (gridSize === 14) return `At the trained 14 × 14 the patch below is ${own}. Choose another size.`;
  return stretch(state) === 1
    ? `Trained on 14 × 14; at ${size} the patch below is ${here} as it was, but the corner of the image stands elsewhere.`
    : `Stretched to the trained 14 × 14, the image keeps its extent, and the patch below is ${here} instead of ${own}.`;
}
