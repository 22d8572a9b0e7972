// What section 8 says. A distance is query − key, here as everywhere.

import { counted, enough, fixed, grouped, power, significant, whole } from "../interface/numbers.js";
import { bias, slopes } from "../math/alibi.js";
import { normal } from "../math/random.js";
import { hasRamp, targetLength, yarnAttention, yarnRamp } from "../math/scaling.js";
import { dot } from "../math/similarity.js";
import { bucket } from "../math/t5.js";
import { rotaryStagesOf, schedulesOf, schedulesRefusal } from "../state/facts.js";

/** The bucket of a distance, with keys on both sides of their query or before it alone. */
export const bucketOf = ({ reach }, distance) =>
  bucket(distance, { bidirectional: reach === "both" });

/** Whether the score stays where both tokens move. */
export function aboutRotary(state) {
  const [plain, turned, moved] = rotaryStagesOf(state).map(({ q, k }) => dot(q, k));
  const here = `q · k was ${fixed(plain)}; at distance m − n = ${whole(state.offset)} it is ${fixed(turned)}.`;
  if (!state.moved) return `${here} Move both, and it will stay.`;
  const apart = Math.abs(moved - turned);
  return `${here} Moved on by ${whole(state.moved)}, it ${apart ? `differs by ${power(apart)}: rounding.` : "is the same number."}`;
}

/** What reading weights by the other pairing does. */
export function aboutPairing(state) {
  const [half, interleaved] = ["half", "interleaved"].map((pairing) => {
    const { q, k } = rotaryStagesOf({ ...state, pairing })[1];
    return dot(q, k);
  });
  return Math.abs(half - interleaved) < 1e-9
    ? `At distance ${whole(state.offset)} the two agree, and the same q and k score ${fixed(half)} in both; choose another to see them part.`
    : `The same q and k score ${fixed(half)} in halves and ${fixed(interleaved)} interleaved.`;
}

/** ALiBi's penalty, with as many slopes as heads. */
export const aboutPenalty = ({ heads }) =>
  heads === 1
    ? `a straight penalty, with one head of slope ${significant(slopes(1)[0])} (ALiBi)`
    : "a straight penalty, steeper in some heads than in others (ALiBi)";

/** What both add at the cursor's distance. */
export function aboutBias(state) {
  const { heads, head, offset, reach } = state;
  if (reach === "past" && offset < 0) {
    return `The key lies ${counted(-offset, "position")} after its query: with past keys only it is masked.`;
  }
  const slope = slopes(heads)[head];
  const adds = fixed(bias(slope, offset));
  const digits = enough((d) => fixed(-Number(slope.toPrecision(d)) * Math.abs(offset)) === adds);
  const number = bucketOf(state, offset);
  const draw = normal(1000 + head);
  const entries = Array.from({ length: 32 }, draw);
  return (
    `Query − key = ${whole(offset)}, head ${head} of ${heads}: ALiBi adds −${significant(slope, digits)} × ` +
    `${Math.abs(offset)} = ${adds}. T5 looks into bucket ${number}, where this ` +
    `head has ${fixed(entries[number], 2)} here (seeded random, not learned).`
  );
}

/** How much each schedule stretches. */
export function aboutScaling(state) {
  const found = schedulesOf(state);
  if (!found) return schedulesRefusal(state);
  const { factor } = state;
  if (factor === 1) return "With s = 1 nothing is stretched: all four are the same.";
  const last = found.plain.length - 1;
  const grown = (name, i) => significant(found.plain[i] / found[name][i], 3);
  const each = ["linear", "NTK", "YaRN"].map(
    (name) => `${name} × ${grown(name, 0)} … × ${grown(name, last)}`,
  );
  return (
    `From the fastest pair to the slowest the wavelengths grow: ${each.join(", ")}. YaRN multiplies ` +
    `cosines and sines with 0.1 ln s + 1 = ${fixed(yarnAttention(factor))}.`
  );
}

/** Which of the two lengths belongs in YaRN's formula. */
export function aboutLengths(state) {
  if (!schedulesOf(state)) return schedulesRefusal(state);
  const { base, factor, trained } = state;
  const d = state.dim - (state.dim % 2);
  const kept = (length) => yarnRamp(d, base, length).filter((r) => r === 0).length;
  const right = `Counting turns in L₀ = ${grouped(trained)} leaves ${counted(kept(trained), "pair")} alone; `;
  if (factor === 1) return `${right}with s = 1 both lengths are the same.`;
  const longer = targetLength(state);
  const left = hasRamp(d, base, longer) ? `leave ${kept(longer)}` : "give no ramp";
  return `${right}counting them in ${grouped(longer)} by mistake would ${left}.`;
}
