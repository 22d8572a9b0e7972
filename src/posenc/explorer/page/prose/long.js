// What section 11 says of lengths that were never trained on.

import { counted, fixed, grouped, significant } from "../interface/numbers.js";
import { angleErrors, arcs, ownScore, spread } from "../math/arcs.js";
import { toBfloat16 } from "../math/rounding.js";
import { targetLength, yarnAttention } from "../math/scaling.js";
import { longSchedulesOf, schedulesRefusal } from "../state/facts.js";
import { METHODS } from "../state/limits.js";

/** The arcs of all pairs under a method; nothing where there is no schedule. */
export function arcsOf(state, method = state.method) {
  const found = longSchedulesOf(state);
  return (
    found &&
    found.none.map((omega, i) => arcs(omega, found[method][i], state.trained, targetLength(state)))
  );
}

/** How many pairs a method leaves of each kind. */
export function kindsOf(state, method) {
  const all = arcsOf(state, method);
  const count = (kind) => all.filter((each) => each.kind === kind).length;
  return { whole: count("whole"), within: count("within"), fresh: count("new") };
}

/** What becomes of the arcs. */
export function aboutArcs(state) {
  if (!longSchedulesOf(state)) return schedulesRefusal(state);
  const { whole, within, fresh } = kindsOf(state, state.method);
  const length = targetLength(state);
  const start = `Trained on ${grouped(state.trained)} positions, ${counted(whole, "pair")} met the whole circle.`;
  if (length <= state.trained) return `${start} The target is no longer than that: nothing is new.`;
  const name = state.method === "none" ? "Unchanged" : `With ${METHODS[state.method]}`;
  const come = fresh === 1 ? "comes" : "come";
  const rest = within === 1 ? "1 stays within the arc it met" : `${within} stay within the arcs they met`;
  return (
    `${start} ${name}, at ${grouped(length)} positions ${counted(fresh, "pair")} ${come} to angles ` +
    `never met${within ? `, and ${rest}` : ""}.`
  );
}

/** What a method does to near tokens. */
export function aboutNear(state) {
  const found = longSchedulesOf(state);
  if (!found) return "";
  const kept = found[state.method][0] / found.none[0];
  return kept > 1 - 1e-12
    ? "Neighboring tokens are as far apart in the fastest pair as they were in training."
    : `Neighboring tokens are ${significant(kept, 3)} times as far apart in the fastest pair as in training: new angles are avoided, and near ones crowded.`;
}

/** What a method multiplies cosines and sines with. */
export const attentionOf = ({ factor }, method) => (method === "yarn" ? yarnAttention(factor) : 1);

/** The score over the distance under a method: that of a query that meets its own key. */
export function scoresOf(state, method) {
  const [frequencies, attention] = [longSchedulesOf(state)[method], attentionOf(state, method)];
  return (distance) => ownScore(frequencies, distance, attention);
}

/** The smallest and the largest score from one distance to another, at the distances drawn. */
function scoreRange(scoreAt, from, to) {
  let [low, high] = [Infinity, -Infinity];
  for (const d of driftDistances(to)) {
    if (d < from) continue;
    const score = scoreAt(d);
    [low, high] = [Math.min(low, score), Math.max(high, score)];
  }
  return [low, high];
}

export const driftDistances = (most) => spread(most, 240);

/** How low the score falls beyond the trained length. */
export function aboutDrift(state) {
  if (!longSchedulesOf(state)) return schedulesRefusal(state);
  const length = targetLength(state);
  if (length <= state.trained) return "Choose a factor above 1 to see the score beyond training.";
  const range = (name) => {
    const [low, high] = scoreRange(scoresOf(state, name), state.trained, length).map((x) =>
      fixed(x, 3),
    );
    return `between ${low} and ${high}`;
  };
  const plain = `Beyond ${grouped(state.trained)} positions, at the distances drawn, the unchanged score lies ${range("none")}`;
  if (state.method === "none") return `${plain}.`;
  const attention = attentionOf(state, state.method) ** 2;
  const times = attention === 1 ? "" : `, the ${fixed(attention, 3)} of its attention factor included`;
  return `${plain}; with ${METHODS[state.method]} ${range(state.method)}${times}.`;
}

/** The largest error of an angle at a position, over all pairs. */
export function worstAngle(frequencies, position, dtype) {
  let most = 0;
  for (const omega of frequencies) {
    most = Math.max(most, angleErrors[dtype](position, omega, toBfloat16));
  }
  return most;
}

/** What dtypes do to the last position of the target. */
export function aboutPrecision(state) {
  const found = longSchedulesOf(state);
  if (!found) return schedulesRefusal(state);
  const last = targetLength(state) - 1;
  const [half, single] = ["bfloat16", "float32"].map((dtype) =>
    worstAngle(found[state.method], last, dtype),
  );
  const held = toBfloat16(last);
  const told = held === last ? "stays what it is" : `becomes ${grouped(held)}`;
  const size = (x) => (x ? `${significant(x, 3)} radians` : "nothing");
  return (
    `The last position, ${grouped(last)}, ${told} in bfloat16, and the worst angle is off by ` +
    `${size(half)}; in float32 it is off by ${size(single)}. The library makes its tables in exact arithmetic and rounds them once.`
  );
}
