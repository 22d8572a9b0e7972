// Section 6: the rotation that moves an encoding by an offset.

import { axes, linearScale } from "../draw/axes.js";
import { colorBar } from "../draw/heatmap.js";
import { panel } from "../draw/panel.js";
import { say } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { createFigure } from "../interface/figure.js";
import { call, matrix, mi, mn, mo, row, show, sub } from "../interface/mathml.js";
import { enough, fixed, rounded, whole } from "../interface/numbers.js";
import { playButton } from "../interface/player.js";
import { rotation, turn } from "../math/shift.js";
import { frequency } from "../math/sincos.js";
import { aboutAlone, aboutError, aboutMap, aboutSines } from "../prose/shift.js";
import { frequenciesOf, pairAt, pairsOf } from "../state/facts.js";

const NEEDS = ["length", "dim", "base", "position", "dimension", "offset", "convention"];
const BLOCKS = 8;

/** Fills the section. */
export function createShift(root, context) {
  const { scheduler, player, store } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const host = (name) => root.querySelector(`[data-figure="${name}"]`);
  playButton(player, root.querySelector("[data-play]"), "offset", "Play offsets");
  const scrub = createField(store, "offset", "Offset k", { id: "shift-offset" });
  root.querySelector("[data-scrub]").prepend(scrub.element);
  const keys = (key, { offset }) =>
    ({ ArrowLeft: { offset: offset - 1 }, ArrowRight: { offset: offset + 1 } })[key];
  const size = (width) => Math.min(width, 400);
  createFigure(host("turn"), context, {
    name: "turn",
    label: "The cursor's pair before and after the shift, on the unit circle.",
    needs: NEEDS,
    height: size,
    draw: drawTurn,
    data: turnData,
    keys,
  });
  createFigure(host("blocks"), context, {
    name: "blocks",
    label: "Part of the shift matrix: 2 × 2 rotations on the diagonal, zero elsewhere.",
    needs: NEEDS,
    height: size,
    draw: drawBlocks,
    data: blockData,
    keys,
  });
  scheduler.add(root, NEEDS, (state) => {
    scrub.update(state);
    explain(live("shift"), state);
    say(live("map"), aboutMap(state));
    say(live("alone"), aboutSines(state));
  });
  const heavy = NEEDS.filter((name) => name !== "dimension" && name !== "position");
  scheduler.add(root, heavy, (state) => say(live("error"), aboutError(state)), { heavy: true });
}

/** The cursor's pair: its frequency, where it stands, and where the shift takes it. */
function moved(state) {
  const pair = pairAt(state);
  if (!pair) return null;
  const omega = frequency(state.base, pair);
  const at = (p) => [Math.sin(p * omega), Math.cos(p * omega)];
  const m = rotation(omega, state.offset);
  const before = at(state.position);
  return {
    pair,
    omega,
    m,
    before,
    after: turn(m, before),
    there: at(state.position + state.offset),
  };
}

function explain(element, state) {
  const found = moved(state);
  if (!found) {
    return say(element, aboutAlone(state));
  }
  const { m, before, after } = found;
  const held = (d) => [m.map((line) => line.map((v) => rounded(v, d))), before.map((v) => rounded(v, d))];
  const digits = enough((d) => turn(...held(d)).every((v, i) => fixed(v) === fixed(after[i])));
  const column = (values, d) => matrix(values.map((v) => [mn(fixed(v, d))]));
  const told = ([a, b]) => `(${fixed(a)}, ${fixed(b)})`;
  return show(
    element,
    `M ${whole(state.offset)} times PE(${state.position}) = ${told(before)} is ` +
      `PE(${whole(state.position + state.offset)}) = ${told(after)}`,
    row(sub(mi("M"), mn(whole(state.offset))), call("PE", mn(state.position))),
    row(mo("="), matrix(m.map((line) => line.map((v) => mn(fixed(v, digits)))))),
    column(before, digits),
    row(mo("="), column(after)),
    row(mo("="), call("PE", mn(whole(state.position + state.offset)))),
  );
}

function drawTurn({ pen, state, width, height, colors }) {
  const box = { x: 46, y: 12, w: 0, h: 0 };
  box.w = box.h = Math.min(width - 66, height - 62);
  const x = linearScale(-1.15, 1.15, box.x, box.x + box.w);
  const y = linearScale(-1.15, 1.15, box.y + box.h, box.y);
  axes(pen, colors, box, {
    x: { at: x, marks: [-1, 0, 1], label: "sine", lines: true },
    y: { at: y, marks: [-1, 0, 1], label: "cosine", lines: true, gap: 32 },
  });
  const radius = x(1) - x(0);
  pen.circle(x(0), y(0), radius, { stroke: colors.soft });
  const found = moved(state);
  if (!found) {
    pen.text("no pair at this dimension", x(0), y(0), { align: "center", fill: colors.soft });
    return undefined;
  }
  const { before, after, omega } = found;
  arc(pen, colors, x, y, state.position * omega, state.offset * omega);
  hand(pen, colors, x, y, before, `p = ${state.position}`, colors.lines[0]);
  hand(
    pen,
    colors,
    x,
    y,
    after,
    `p + k = ${whole(state.position + state.offset)}`,
    colors.lines[1],
    true,
  );
  return undefined;
}

/** The way from before to after, drawn as at most one turn; the rest is said in words. */
function arc(pen, colors, x, y, from, by) {
  const shown = by % (2 * Math.PI);
  const steps = Math.max(2, Math.ceil(Math.abs(shown) * 16));
  const points = Array.from({ length: steps + 1 }, (_, i) => {
    const angle = from + (shown * i) / steps;
    return [x(0.45 * Math.sin(angle)), y(0.45 * Math.cos(angle))];
  }).flat();
  pen.polyline(points, { stroke: colors.soft, width: 1.5, dash: [4, 3] });
}

function hand(pen, colors, x, y, [s, c], words, stroke, square = false) {
  pen.line(x(0), y(0), x(s), y(c), { stroke, width: 2.5 });
  const edge = { fill: stroke, stroke: colors.ground, width: 2 };
  if (square) pen.rect(x(s) - 6, y(c) - 6, 12, 12, edge);
  else pen.circle(x(s), y(c), 7, edge);
  const align = s < -0.6 ? "left" : s > 0.6 ? "right" : "center";
  pen.text(words, x(s), y(c) + (c >= 0 ? -16 : 17), { align, size: 12, weight: 600 });
}

function turnData(state) {
  const found = moved(state);
  const rows = found
    ? [
        ["PE(p)", ...found.before],
        ["M_k PE(p)", ...found.after],
        ["PE(p + k)", ...found.there],
      ]
    : [["no pair", "", ""]];
  return { columns: ["vector", "sine", "cosine"], count: rows.length, row: (r) => rows[r] };
}

/** The pairs of the window: eight around the cursor's. */
function blockWindow({ convention, dim, base, dimension }) {
  const { pairs } = pairsOf(convention, dim);
  const all = frequenciesOf(convention, dim, base);
  const count = Math.min(BLOCKS, all.length);
  const here = pairs.findIndex((pair) => pair.sin === dimension || pair.cos === dimension);
  const from = Math.min(Math.max(here - (count >> 1), 0), all.length - count);
  return { from, here: here - from, omegas: all.slice(from, from + count), total: all.length };
}

function blockRows({ omegas }, offset) {
  return omegas.flatMap((omega, i) =>
    rotation(omega, offset).map((pair) => {
      const line = new Array(2 * omegas.length).fill(0);
      line.splice(2 * i, 2, ...pair);
      return line;
    }),
  );
}

const blockNames = ({ from, omegas }) =>
  omegas.flatMap((_, i) => [`sin ${from + i}`, `cos ${from + i}`]);

function drawBlocks({ pen, state, width, height, colors }) {
  const shown = blockWindow(state);
  const side = Math.min(width - 112, height - 72);
  if (!shown.omegas.length) {
    pen.text(state.base === 1 ? "no pairs are shown" : "no pairs: no such matrix", width / 2, height / 2, {
      align: "center",
      fill: colors.soft,
    });
    return undefined;
  }
  const scale = colors.signed(-1, 1);
  const names = blockNames(shown);
  const cell = panel(pen, colors, {
    x: 52,
    y: 34,
    w: side,
    h: side,
    scale,
    rows: names,
    columns: names,
    values: blockRows(shown, state.offset),
    digits: shown.omegas.length <= 2 ? 3 : undefined,
    title: `M, k = ${whole(state.offset)}: pairs ${shown.from} … ${shown.from + shown.omegas.length - 1} of ${shown.total}`,
  });
  if (shown.here >= 0 && shown.here < shown.omegas.length) {
    const at = 2 * shown.here;
    pen.rect(52 + at * cell.w, 34 + at * cell.h, 2 * cell.w, 2 * cell.h, {
      stroke: colors.ink,
      width: 2,
    });
  }
  colorBar(pen, colors, 52 + side + 16, 34, side, scale, [-1, 0, 1]);
  return undefined;
}

function blockData(state) {
  const shown = blockWindow(state);
  if (!shown.omegas.length) return { columns: ["matrix"], count: 1, row: () => ["no pairs"] };
  const [rows, names] = [blockRows(shown, state.offset), blockNames(shown)];
  return { columns: ["", ...names], count: rows.length, row: (r) => [names[r], ...rows[r]] };
}
