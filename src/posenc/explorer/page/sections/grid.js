// Section 14: a grid of patches and whom one of them resembles.

import { chart } from "../draw/chart.js";
import { colorBar } from "../draw/heatmap.js";
import { panel } from "../draw/panel.js";
import { createButtons } from "../interface/choices.js";
import { el, say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { alikeness } from "../math/patches.js";
import {
  aboutDirections,
  aboutGridKind,
  aboutKin,
  aboutNeighbors,
  aboutResolution,
} from "../prose/patches.js";
import { GRID_DIM } from "../state/defaults.js";
import { patchMapOf } from "../state/facts.js";

const NEEDS = [
  ...["gridKind", "gridSize", "gridHead", "coordinates"],
  ...["patchRow", "patchColumn"],
];
const SAYS = {
  "grid-kind": aboutGridKind,
  neighbors: aboutNeighbors,
  kin: aboutKin,
  directions: aboutDirections,
  resolution: aboutResolution,
};
const FIELDS = [
  ["gridSize", "Patches a side"],
  ["patchRow", "Row of the patch"],
  ["patchColumn", "Column of the patch"],
  ["gridHead", "Head"],
];

/** Fills the section. */
export function createGrid(root, context) {
  const { store, scheduler } = context;
  const kinds = root.querySelector("[data-grid-kinds]");
  const host = () => kinds.appendChild(el("div"));
  createButtons(host(), context, "gridKind", "Encoding", [
    ["flat", "one number"],
    ["sine", "2-D sine"],
    ["axial", "axial rotary"],
    ["mixed", "mixed rotary"],
  ]);
  createButtons(host(), context, "coordinates", "Coordinates", [
    ["own", "own coordinates"],
    ["stretched", "stretched to 14"],
  ]);
  const fields = FIELDS.map(([name, words]) => ({ name, ...createField(store, name, words) }));
  root.querySelector("[data-grid]").append(...fields.map(({ element }) => element));
  const options = { needs: NEEDS, keys };
  createFigure(root.querySelector('[data-figure="patches"]'), context, {
    ...{ ...options, name: "patches", draw: drawPatches, data: patchesData },
    label: "How alike every patch is to the chosen one.",
    height: (width) => sideOf(width) + 62,
  });
  createFigure(root.querySelector('[data-figure="lines"]'), context, {
    ...{ ...options, name: "lines", draw: drawLines, data: linesData, height: () => 330 },
    label: "How alike patches are along the row, the column and both diagonals.",
  });
  scheduler.add(root, NEEDS, (state) => {
    for (const { name, element, update } of fields) {
      if (name === "gridHead") element.hidden = state.gridKind !== "mixed";
      update(state);
    }
    for (const [name, about] of Object.entries(SAYS)) {
      say(root.querySelector(`[data-live="${name}"]`), about(state));
    }
  });
}

const keys = (key, { patchRow, patchColumn, gridSize }) =>
  ({
    ArrowUp: { patchRow: patchRow - 1 },
    ArrowDown: { patchRow: patchRow + 1 },
    ArrowLeft: { patchColumn: patchColumn - 1 },
    ArrowRight: { patchColumn: patchColumn + 1 },
    Home: { patchColumn: 0 },
    End: { patchColumn: gridSize - 1 },
  })[key];

const LEFT = 40;
const TOP = 20;
const sideOf = (width) => Math.min(width - LEFT - 52, 420);

function drawPatches({ pen, state, width, colors }) {
  const [side, size] = [sideOf(width), state.gridSize];
  const scale = colors.signed(-1, 1);
  const names = Array.from({ length: size }, (_, i) => String(i));
  const cell = panel(pen, colors, {
    ...{ x: LEFT, y: TOP, w: side, h: side, values: patchMapOf(state), scale },
    ...{ rows: names, columns: names, digits: 1 },
    marked: { row: state.patchRow, column: state.patchColumn },
  });
  colorBar(pen, colors, LEFT + side + 10, TOP, side, scale, [-1, 0, 1]);
  pen.text("columns →, rows ↓", LEFT, TOP + side + 32, { size: 11, fill: colors.soft });
  const inside = (x) => Math.min(Math.max(Math.floor(x), 0), size - 1);
  return (x, y) => ({
    state: { patchRow: inside((y - TOP) / cell.h), patchColumn: inside((x - LEFT) / cell.w) },
  });
}

const LINES = [
  ["along the row", 0, 1],
  ["along the column", 1, 0],
  ["diagonal ↘", 1, 1],
  ["diagonal ↙", 1, -1],
];

function drawLines(view) {
  const { state, colors } = view;
  const far = state.gridSize - 1;
  const DASHES = [[], [8, 3], [2, 3], [8, 3, 2, 3]];
  chart(view, {
    x: { low: -far, high: far, label: "steps from the patch" },
    y: { low: -1, high: 1, label: "how alike" },
    lines: LINES.map(([name, rows, columns], i) => ({
      name,
      points: Array.from({ length: 2 * far + 1 }, (_, s) => s - far).flatMap((s) => [
        ...[s, alikeness(state, GRID_DIM, s * rows, s * columns)],
      ]),
      style: { stroke: colors.lines[i], width: 1.8, dash: DASHES[i] },
    })),
  });
  return undefined;
}

function patchesData(state) {
  const map = patchMapOf(state);
  return {
    columns: ["row", ...map.map((_, c) => `column ${c}`)],
    count: map.length,
    row: (r) => [r, ...map[r]],
    nearRow: state.patchRow,
    nearColumn: state.patchColumn,
  };
}

function linesData(state) {
  const far = state.gridSize - 1;
  return {
    columns: ["steps", ...LINES.map(([name]) => name)],
    count: 2 * far + 1,
    row: (i) => [
      ...[i - far],
      ...LINES.map(([, r, c]) => alikeness(state, GRID_DIM, (i - far) * r, (i - far) * c)),
    ],
    nearRow: far,
  };
}
