// The score over the distance with its band, and while both tokens move on.

import { chart, line, span } from "../draw/chart.js";
import { createFigure } from "../interface/figure.js";
import { whole } from "../interface/numbers.js";
import { envelope, part, score } from "../math/rotary_pairs.js";
import { slowPairsOf } from "../state/facts.js";

const FAR = 128;
const ON = 64;

const alone = ({ rotaryFault }) => rotaryFault === "queries";

/** Fills this part of the section. */
export function createRotaryScores(root, context, needs) {
  const keys = (key, { offset }) =>
    ({ ArrowLeft: { offset: offset - 1 }, ArrowRight: { offset: offset + 1 } })[key];
  const figure = (name, label, draw, data, more = {}) =>
    createFigure(root.querySelector(`[data-figure="${name}"]`), context, {
      ...{ name, label, needs, height: () => 300, draw, data },
      ...more,
    });
  figure(
    "rotary-distance",
    "The score over the distance, the part of the chosen pair, and the band that the score stays in.",
    drawDistance,
    distanceData,
    { keys },
  );
  figure("rotary-kept", "The score while both tokens move on at one distance.", drawKept, keptData);
}

function drawDistance(view) {
  const { pen, state, colors } = view;
  const pairs = slowPairsOf(state);
  const [n, i] = [state.position, state.rotaryPair];
  const bands = [0, 1].map((side) =>
    line(-FAR, FAR, (d) => envelope(pairs, i, n + d, n, alone(state))[side]),
  );
  const all = bands.flatMap((points) => points.filter((_, at) => at % 2));
  const { x, y, box, xOf } = chart(view, {
    x: { low: -FAR, high: FAR, label: "distance query − key, positions", name: whole },
    y: { ...span([...all, 0]), label: "score q · k" },
    lines: [
      ...bands.map((points, side) => ({
        name: side ? "" : "its band",
        points,
        style: { stroke: colors.soft, dash: [4, 4] },
      })),
      {
        name: `part of pair ${i}`,
        points: line(-FAR, FAR, (d) => part(pairs[i], n + d, n, alone(state))),
        style: { stroke: colors.lines[1], width: 1.4 },
      },
      {
        name: "score",
        points: line(-FAR, FAR, (d) => score(pairs, n + d, n, alone(state))),
        style: { stroke: colors.lines[0], width: 2 },
      },
    ],
  });
  if (Math.abs(state.offset) <= FAR) {
    const at = x(state.offset);
    pen.line(at, box.y, at, box.y + box.h, { stroke: colors.soft, dash: [2, 3] });
    const here = score(pairs, n + state.offset, n, alone(state));
    pen.circle(at, y(here), 6, { stroke: colors.ink, width: 2 });
  }
  return (px) => ({ state: { offset: Math.round(xOf(px)) } });
}

function distanceData(state) {
  const pairs = slowPairsOf(state);
  const n = state.position;
  return {
    columns: ["query − key", "score", "part of the pair", "band from", "band to"],
    count: 2 * FAR + 1,
    row: (r) => {
      const at = [n + r - FAR, n, alone(state)];
      return [
        r - FAR,
        score(pairs, ...at),
        part(pairs[state.rotaryPair], ...at),
        ...envelope(pairs, state.rotaryPair, ...at),
      ];
    },
    nearRow: Math.min(Math.max(state.offset + FAR, 0), 2 * FAR),
  };
}

const kept = (state, t) =>
  score(slowPairsOf(state), state.position + state.offset + t, state.position + t, alone(state));

function drawKept(view) {
  const { state, colors } = view;
  const pairs = slowPairsOf(state);
  const most = pairs.reduce((sum, { size }) => sum + size, 0);
  chart(view, {
    x: { low: 0, high: ON, label: "both moved on by, positions" },
    y: { low: -most, high: most, label: "score q · k" },
    lines: [
      {
        name: alone(state) ? "score, queries alone turned" : "score",
        points: line(0, ON, (t) => kept(state, t)),
        style: { stroke: colors.lines[alone(state) ? 1 : 0], width: 2.4 },
      },
    ],
  });
  return undefined;
}

function keptData(state) {
  return {
    columns: ["both moved on by", "score"],
    count: ON + 1,
    row: (t) => [t, kept(state, t)],
  };
}
