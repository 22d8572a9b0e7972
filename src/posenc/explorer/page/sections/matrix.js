// Section 2: position × dimension, and one number with its formula.

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
import { call, frac, mn, mo, row, show, sup } from "../interface/mathml.js";
import { fixed } from "../interface/numbers.js";
import { CONVENTIONS } from "../math/conventions.js";
import { ROUNDINGS } from "../math/rounding.js";
import { block, value } from "../math/sincos.js";
import {
  aboutBfloat16,
  aboutColumns,
  aboutConvention,
  aboutDoubleExponent,
  aboutLayouts,
  aboutWavelength,
} from "../prose/matrix.js";
import { channelsOf, valueAt } from "../state/facts.js";

const NEEDS = ["length", "dim", "base", "position", "dimension", "convention", "dtype"];
const MARGIN = { left: 64, right: 76, top: 34, bottom: 46 };
const TALLEST = 420;

/** Fills the section. */
export function createMatrix(root, context) {
  const { scheduler } = context;
  const start = { column: 0, row: 0 };
  createFigure(root.querySelector("[data-figure]"), context, {
    name: "matrix",
    label: "Heatmap of the encoding, position by dimension, colors fixed from −1 to 1.",
    needs: NEEDS,
    height: (width, state) => {
      const rows = Math.min(state.length, TALLEST);
      return MARGIN.top + MARGIN.bottom + rows * cellSize(TALLEST, state.length, 1, 24);
    },
    draw: (view) => drawMatrix(view, start),
    data: matrixData,
    hover: true,
  });
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  scheduler.add(root, NEEDS, (state) => {
    explain(live("matrix"), state);
    say(live("columns"), aboutColumns(state));
    say(live("convention"), aboutConvention(state));
    say(live("wavelength"), aboutWavelength(state));
  });
  const asked = (name, needs, about) => {
    scheduler.add(live(name), needs, (state) => say(live(name), about(state)), { heavy: true });
  };
  asked("double", ["length", "dim", "base"], aboutDoubleExponent);
  asked("layouts", ["dim", "base", "position", "offset"], aboutLayouts);
  asked("bfloat16", ["length", "dim", "base", "convention", "position"], aboutBfloat16);
}

function drawMatrix({ pen, state, width, height, colors }, start) {
  const { length, dim, position, dimension } = state;
  const room = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
  const cell = cellSize(room.w, dim, pen.ratio, 40);
  const rowHeight = cellSize(room.h, length, 1, 24);
  const columns = Math.min(dim, Math.floor(room.w / cell));
  const rows = Math.min(length, Math.floor(room.h / rowHeight));
  start.column = windowFrom(start.column, columns, dim, dimension);
  start.row = windowFrom(start.row, rows, length, position);

  const scale = colors.signed(-1, 1);
  const grid = {
    x: MARGIN.left,
    y: MARGIN.top,
    cell,
    rowHeight,
    columns,
    rows,
    firstColumn: start.column,
    firstRow: start.row,
  };
  const [w, h] = [columns * cell, rows * rowHeight];
  pen.cells(grid.x, grid.y, w, h, columns, rows, painted(state, grid, scale));
  gridAxes(pen, colors, grid, { x: "dimension j", y: "position p" });
  minimap(pen, colors, grid, { columns: dim, rows: length, across: "j", down: "p" });
  colorBar(pen, colors, grid.x + w + 22, grid.y, h, scale, [-1, -0.5, 0, 0.5, 1]);
  mark(
    pen,
    colors,
    grid.x + (dimension - start.column) * cell,
    grid.y + (position - start.row) * rowHeight,
    cell,
    rowHeight,
  );
  return (x, y) => {
    const at = (offset, size, from, count) =>
      from + Math.min(Math.max(Math.floor(offset / size), 0), count - 1);
    return {
      state: {
        dimension: at(x - grid.x, cell, start.column, columns),
        position: at(y - grid.y, rowHeight, start.row, rows),
      },
    };
  };
}

/** The shades of the window; kept, since most moves of the cursor leave it where it is. */
function painter() {
  let key;
  let kept;
  return ({ convention, dim, base, dtype }, { firstColumn, firstRow, columns, rows }, scale) => {
    const where = [firstColumn, firstRow, columns, rows];
    const asked = [convention, dim, base, dtype, ...where, scale.name].join();
    if (asked === key) return kept;
    const shown = channelsOf(convention, dim).slice(firstColumn, firstColumn + columns);
    const values = block(shown, base, firstRow + CONVENTIONS[convention].first, rows);
    if (dtype !== "float64") values.forEach((v, i) => (values[i] = ROUNDINGS[dtype](v)));
    [key, kept] = [asked, shades(values, scale)];
    return kept;
  };
}

const painted = painter();

function matrixData(state) {
  const { length, dim, position, dimension, convention, base, dtype } = state;
  const all = channelsOf(convention, dim);
  return {
    columns: ["position", ...Array.from({ length: dim }, (_, j) => `dimension ${j}`)],
    count: length,
    row: (p) => [
      p,
      ...all.map((c) => ROUNDINGS[dtype](value(c, base, p + CONVENTIONS[convention].first))),
    ],
    nearRow: position,
    nearColumn: dimension,
  };
}

function explain(element, state) {
  const { base, convention, dim, position, dimension } = state;
  const { kind, top, bottom } = channelsOf(convention, dim)[dimension];
  const number = position + CONVENTIONS[convention].first;
  const result = fixed(valueAt(state, position, dimension));
  const text =
    kind === "zero"
      ? `PE(${position},${dimension}) = 0: a column of zeros`
      : `PE(${position},${dimension}) = ${kind}(${number}/${base}^(${top}/${bottom})) = ${result}`;
  const left = call("PE", mn(position), mo(","), mn(dimension));
  if (kind === "zero") return show(element, text, row(left, mo("="), mn(0)));
  const raised = sup(mn(base), row(mn(top), mo("/"), mn(bottom)));
  const formula = call(kind, frac(mn(number), raised));
  return show(element, text, left, row(mo("="), formula), row(mo("="), mn(result)));
}
