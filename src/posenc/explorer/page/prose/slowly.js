// What section 10 says of two tokens and their pairs.

import { counted, enough, fixed, grouped, power, rounded, significant, whole } from "../interface/numbers.js";
import { envelope, part, score } from "../math/rotary_pairs.js";
import { wavelength } from "../math/sincos.js";
import { slowPairsOf } from "../state/facts.js";

const alone = ({ rotaryFault }) => rotaryFault === "queries";

/** What the chosen pair adds, with its arithmetic. */
export function aboutPair(state) {
  const { position: n, offset, rotaryPair: i } = state;
  const pair = slowPairsOf(state)[i];
  const [a, b] = pair.channels;
  const adds = fixed(part(pair, n + offset, n, alone(state)));
  const start = `Pair ${i} (channels ${a} and ${b})`;
  if (!pair.turns) {
    return `${start} is left alone: it adds ${adds}, wherever the two tokens stand.`;
  }
  const between = pair.query - pair.key;
  const count = alone(state) ? n + offset : offset;
  const steps = alone(state) ? `${whole(count)} (the query's place)` : whole(count);
  // A frequency is multiplied with a distance that may be thousands, and its rounding too.
  const digits = enough((d) => {
    const turned = count * Number(pair.omega.toPrecision(d));
    return fixed(rounded(pair.size, d) * Math.cos(rounded(between, d) + turned)) === adds;
  });
  const omega =
    pair.omega < 1e-3
      ? power(pair.omega, digits - 1)
      : grouped(Number(pair.omega.toPrecision(digits)));
  const said =
    `${start} has a wavelength of ${significant(wavelength(pair.omega))} positions. Lengths multiplied, ` +
    `times the cosine of the angle between: ${fixed(pair.size, digits)} × cos(${fixed(between, digits)} + ` +
    `${steps} × ${omega}) = ${adds}.`;
  return said.replaceAll("+ −", "− ");
}

/** The sum over the pairs. */
export function aboutSum(state) {
  const { position: n, offset } = state;
  const pairs = slowPairsOf(state);
  const all = score(pairs, n + offset, n, alone(state));
  const parts = pairs.map((pair) => part(pair, n + offset, n, alone(state)));
  const most = parts.reduce((best, v, i) => (Math.abs(v) > Math.abs(parts[best]) ? i : best), 0);
  return (
    `Query at m = ${whole(n + offset)}, key at n = ${n}: the ${pairs.length} parts add up to a score of ` +
    `${fixed(all)}; the largest is that of pair ${most}, ${fixed(parts[most])}.`
  );
}

/** What fast and slow pairs do to the curve. */
export function aboutTremble(state) {
  const mobile = slowPairsOf(state).filter(({ turns }) => turns);
  const [first, last] = [mobile[0], mobile.at(-1)].map(({ omega }) => wavelength(omega));
  if (first === last) {
    const which = mobile.length === 1 ? "One pair turns" : `All ${mobile.length} pairs turn alike`;
    const around = mobile.length < slowPairsOf(state).length ? ", around what the still pairs add" : "";
    return `${which}: the score is one cosine with a wavelength of ${significant(first)} positions${around}.`;
  }
  const run = `The wavelengths go from ${significant(first)} to ${significant(last)} positions`;
  return last < 2 * first
    ? `${run}: all pairs are about as fast as the first, and none carries the score far.`
    : `${run}: fast pairs make the score tremble from token to token, slow ones carry it far.`;
}

/** How far the score changes while both tokens move on together. */
export function keptSpread(state) {
  const pairs = slowPairsOf(state);
  const scores = Array.from({ length: 65 }, (_, t) =>
    score(pairs, state.position + state.offset + t, state.position + t, alone(state)),
  );
  return Math.max(...scores) - Math.min(...scores);
}

/** Whether the distance alone decides. */
export function aboutKept(state) {
  const spread = keptSpread(state);
  const told = spread < 1e-3 ? power(spread) : fixed(spread);
  if (!alone(state)) {
    return `Both moved on by 0 to 64 at distance ${whole(state.offset)}, the score changes by ${told}${spread ? ": rounding" : ""}. The distance alone decides.`;
  }
  return `With queries alone turned, both moved on by 0 to 64 at distance ${whole(state.offset)}, the score changes by ${told}: it knows where the query stands, and nothing of the key.`;
}

/** Where the curve of the score must stay. */
export function aboutEnvelope(state) {
  const { position: n, offset, rotaryPair: i } = state;
  const pairs = slowPairsOf(state);
  const [low, high] = envelope(pairs, i, n + offset, n, alone(state));
  const others = pairs.slice(0, i).filter(({ turns }) => turns).length;
  const middle = pairs[i].turns ? `pair ${i} and all after it` : "the pairs that stand still";
  const line = `The band is the sum of ${middle}, and on either side what the ${counted(others, "other pair")} can add at most.`;
  return others
    ? `${line} At distance ${whole(offset)} the score lies between ${fixed(low)} and ${fixed(high)}.`
    : `No pair before pair ${i} turns: the band is the score itself, ${fixed(low)}. Choose a later pair to see a band.`;
}

/** What is left when some pairs do not turn. */
export function aboutPartial(state) {
  const pairs = slowPairsOf(state);
  const still = pairs.filter(({ turns }) => !turns);
  if (!still.length) {
    return `All ${pairs.length} pairs turn: no part of the score is the same at every distance.`;
  }
  const adds = still.reduce((sum, pair) => sum + part(pair, 0, 0), 0);
  return (
    `${still.length} of ${pairs.length} pairs stand still and add ${fixed(adds)} at every distance: what ` +
    "two tokens say to each other, however far apart. GPT-NeoX turns a quarter of a head, Phi-2 two fifths."
  );
}

/** Half against interleaved, for the same vectors. */
export function aboutBothPairings(state) {
  const { position: n, offset } = state;
  const of = (pairing) =>
    score(slowPairsOf({ ...state, pairing }), n + offset, n, alone(state));
  const [half, interleaved] = [of("half"), of("interleaved")];
  const same = Math.abs(half - interleaved) < 1e-9;
  return `The same query and key score ${fixed(half)} in halves and ${fixed(interleaved)} interleaved${same ? ": here the two agree" : ""}.`;
}
