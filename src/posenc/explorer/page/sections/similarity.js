// Section 5: dot products of positions, as a matrix and as a profile over the offset.

import { axes, below, linearScale, ticks, wholeTicks } from "../draw/axes.js";
import {
  cellSize,
  colorBar,
  gridAxes,
  mark,
  minimap,
  shades,
  windowFrom,
} from "../draw/heatmap.js";
import { say } from "../interface/dom.js";
import { createFigure } from "../interface/figure.js";
import { largestProduct, product } from "../math/similarity.js";
import {
  aboutClosest,
  aboutDiagonals,
  aboutRise,
  aboutTwo,
  aboutUniqueness,
  distanceDecides,
} from "../prose/similarity.js";
import { gramOf, rowOf } from "../state/facts.js";
import { drawRuler } from "./ruler.js";

const TABLE = ["length", "dim", "base", "convention"];
const NEEDS = [...TABLE, "position", "offset"];
const MARGIN = { left: 60, right: 72, top: 34, bottom: 46 };
const TALLEST = 350;

/** Fills the section. */
export function createSimilarity(root, context) {
  const { scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const host = (name) => root.querySelector(`[data-figure="${name}"]`);
  const start = { row: 0, column: 0 };
  const keys = (key, { offset }) =>
    ({ ArrowLeft: { offset: offset - 1 }, ArrowRight: { offset: offset + 1 } })[key];
  createFigure(host("ruler"), context, {
    name: "ruler",
    label: "Two positions on a ruler.",
    needs: [...NEEDS, "dimension"],
    height: () => 98,
    draw: drawRuler,
    data: rulerData,
    keys,
  });
  createFigure(host("products"), context, {
    name: "products",
    label: "Dot products of all positions with each other.",
    needs: NEEDS,
    height,
    draw: (view) => drawProducts(view, start),
    data: productData,
    keys,
  });
  createFigure(host("profile"), context, {
    name: "profile",
    label: "Dot product over the offset from the cursor's position.",
    needs: NEEDS,
    height,
    draw: drawProfile,
    data: profileData,
    keys,
  });
  scheduler.add(root, NEEDS, (state) => {
    say(live("similarity"), aboutTwo(state));
    say(live("diagonals"), aboutDiagonals(state));
    say(live("rise"), aboutRise(state));
    say(live("uniqueness"), aboutUniqueness(state));
    root.querySelector(".formulas").hidden = !distanceDecides(state);
  });
  scheduler.add(root, TABLE, (state) => say(live("closest"), aboutClosest(state)), { heavy: true });
}

const products = ({ convention, dim, base, length }) => gramOf(convention, dim, base, length);
const inside = ({ length }, p) => Math.min(Math.max(p, 0), length - 1);

const full = (state) => largestProduct(products(state), state.length);

function rulerData(state) {
  const { position, offset } = state;
  const rows = [position, position + offset];
  return {
    columns: ["position", ...rowOf(state, 0).map((_, j) => `dimension ${j}`)],
    count: 2,
    row: (r) => [rows[r], ...rowOf(state, rows[r])],
    nearColumn: state.dimension,
  };
}

/** Matrix and profile stand side by side, and are equally high. */
const height = (width, state) =>
  MARGIN.top + MARGIN.bottom + Math.max(layout(width, state, 1).side, 160);

/** A square of whole cells, as large as there is room for. */
function layout(width, { length }, ratio) {
  const room = Math.min(width - MARGIN.left - MARGIN.right, TALLEST);
  const cell = cellSize(room, length, ratio, 40);
  const count = Math.min(length, Math.floor(room / cell));
  return { cell, count, side: count * cell };
}

function drawProducts({ pen, state, width, colors }, start) {
  const { length, position, offset } = state;
  const second = inside(state, position + offset);
  const { cell, count, side } = layout(width, state, pen.ratio);
  start.row = windowFrom(start.row, count, length, position);
  start.column = windowFrom(start.column, count, length, second);
  const table = products(state);
  const values = new Float64Array(count * count);
  for (let r = 0, at = 0; r < count; r++) {
    for (let c = 0; c < count; c++) values[at++] = product(table, start.row + r, start.column + c);
  }
  const most = full(state);
  const scale = colors.signed(-most, most);
  const grid = {
    x: MARGIN.left,
    y: MARGIN.top,
    cell,
    rowHeight: cell,
    columns: count,
    rows: count,
    firstColumn: start.column,
    firstRow: start.row,
  };
  pen.cells(grid.x, grid.y, side, side, count, count, shades(values, scale));
  gridAxes(pen, colors, grid, { x: "position q", y: "position p" });
  minimap(pen, colors, grid, { columns: length, rows: length, across: "q", down: "p" });
  const marks = [-below(most, 3), 0, below(most, 3)];
  colorBar(pen, colors, grid.x + side + 20, grid.y, side, scale, marks);
  mark(
    pen,
    colors,
    grid.x + (second - start.column) * cell,
    grid.y + (position - start.row) * cell,
    cell,
    cell,
  );
  return (x, y) => {
    const p = inside(state, start.row + Math.floor((y - grid.y) / cell));
    const q = inside(state, start.column + Math.floor((x - grid.x) / cell));
    return { state: { position: p, offset: q - p } };
  };
}

function productData(state) {
  const { length, position, offset } = state;
  const table = products(state);
  const positions = Array.from({ length }, (_, q) => q);
  return {
    columns: ["p \\ q", ...positions.map(String)],
    count: length,
    row: (p) => [p, ...positions.map((q) => product(table, p, q))],
    nearRow: position,
    nearColumn: inside(state, position + offset),
  };
}

function drawProfile({ pen, state, width, height, colors }) {
  const { length, position, offset } = state;
  const table = products(state);
  const box = { x: 52, y: MARGIN.top, w: width - 70, h: height - MARGIN.top - MARGIN.bottom };
  const [low, high] = [-position, length - 1 - position];
  const values = Array.from({ length }, (_, q) => product(table, position, q));
  const [least, most] = [Math.min(0, ...values), full(state)];
  const x = linearScale(low, high, box.x, box.x + box.w);
  const y = linearScale(least, most * 1.04, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: { at: x, marks: wholeTicks(low, high, box.w / 70), label: `offset k from p = ${position}` },
    y: { at: y, marks: ticks(least, most, 5), label: "dot product", lines: true, gap: 38 },
  });
  const stroke = colors.lines[0];
  pen.polyline(
    values.flatMap((v, q) => [x(q - position), y(v)]),
    { stroke, width: 1.6 },
  );
  if (length <= 120)
    values.forEach((v, q) => pen.circle(x(q - position), y(v), 2.2, { fill: stroke }));
  const second = position + offset;
  if (second >= 0 && second < length) {
    pen.line(x(offset), box.y, x(offset), box.y + box.h, { stroke: colors.soft, dash: [2, 3] });
    pen.circle(x(offset), y(values[second]), 6, { stroke: colors.ink, width: 2 });
  }
  return (px) => {
    const k = Math.round(low + ((px - box.x) / box.w) * (high - low));
    return { state: { offset: Math.min(Math.max(k, low), high) } };
  };
}

function profileData(state) {
  const { length, position, offset } = state;
  const table = products(state);
  return {
    columns: ["offset", "position", "dot product"],
    count: length,
    row: (q) => [q - position, q, product(table, position, q)],
    nearRow: inside(state, position + offset),
  };
}
