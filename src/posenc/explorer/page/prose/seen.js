// What section 12 says of biases and of what attention sees after them.

import { counted, fixed, grouped, significant } from "../interface/numbers.js";
import { slopes } from "../math/alibi.js";
import { keysSeen, nearestHolding } from "../math/seen.js";
import { seenOf } from "../state/facts.js";

/** The bias in words, with its numbers. */
export function aboutKind(state) {
  const { biasKind, heads, head, kerpleP, kerpleA, window, buckets, keys } = state;
  const { bias } = seenOf(state);
  const far = `the farthest of ${grouped(keys)} keys loses`;
  const lost = significant(-bias.at(-1), 5);
  const beyond = significant(bias[keys >> 1] - bias.at(-1), 5);
  return {
    none: () => "No bias: content alone decides, and every key competes with all others.",
    alibi: () =>
      `ALiBi takes ${significant(slopes(heads)[head])} per position off in head ${head} of ${heads}: ${far} ${lost}.`,
    t5: () =>
      `T5 adds one of ${new Set(bias).size} numbers that these distances reach, of the ${buckets} buckets of head ${head}: seeded random here, not learned.`,
    kerple: () =>
      `KERPLE takes off ${significant(kerpleP)} · ln(1 + ${significant(kerpleA)} · d): ${far} ${lost}, of which the farther half of the way takes ${beyond}.`,
    window: () =>
      keys > window
        ? `A window of ${grouped(window)} hides ${counted(keys - window, "key")} altogether; within it nothing is added.`
        : `A window of ${grouped(window)} hides none of ${grouped(keys)} keys.`,
  }[biasKind]();
}

/** Who holds the weight, with the bias and without. */
export function aboutSeen(state) {
  const { weights, plain } = seenOf(state);
  const half = (w) => grouped(nearestHolding(w, 0.5));
  const most = (w) => grouped(nearestHolding(w, 0.9));
  const start = `The nearest ${half(weights)} of ${grouped(state.keys)} keys hold half of the weight, the nearest ${most(weights)} hold 90 %`;
  return state.biasKind === "none"
    ? `${start}.`
    : `${start}; without the bias it would be ${half(plain)} and ${most(plain)}.`;
}

/** How many keys are seen, as if equally. */
export function aboutKeysSeen(state) {
  const { weights, plain } = seenOf(state);
  const many = (w) => significant(keysSeen(w), 3);
  const own = fixed(weights[0]);
  return state.biasKind === "none"
    ? `The softmax is as uncertain as over ${many(plain)} equal keys; the query's own key has ${own}.`
    : `The softmax is as uncertain as over ${many(weights)} equal keys, ${many(plain)} without the bias; the query's own key has ${own}.`;
}

/** What a longer text changes. */
export function aboutLonger(state) {
  const longer = { ...state, keys: 4096 };
  if (state.keys === 4096) return "Fewer keys: move the slider, and see which curve stays.";
  const lost = 1 - seenOf(longer).weights.slice(0, state.keys).reduce((sum, w) => sum + w, 0);
  const told = lost < 5e-5 ? "none of the weight, to four digits" : `${significant(100 * lost, 3)} % of the weight`;
  return `Were there 4096 keys instead, those beyond the first ${grouped(state.keys)} would hold ${told}.`;
}
