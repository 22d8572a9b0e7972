// Frequencies of rotary embeddings, plain and stretched for longer contexts.

/** ω_i = b^(−2i/d) for i < d/2. */
export const geometric = (dim, base) =>
  Array.from({ length: Math.floor(dim / 2) }, (_, i) => Math.pow(base, (-2 * i) / dim));

/** Position interpolation: every frequency divided by the factor. */
export const linear = (dim, base, factor) => geometric(dim, base).map((omega) => omega / factor);

/** NTK: the base grows to b·s^(d/(d−2)), so that the slowest pair is divided by s exactly. */
export const ntk = (dim, base, factor) => geometric(dim, base * Math.pow(factor, dim / (dim - 2)));

/** The positions of a text s times as long: whole, and no more than s·L₀ (which rounding may miss by a hair). */
export const targetLength = ({ trained, factor }) => Math.floor(trained * factor * (1 + 1e-12));

export const YARN = { fast: 32, slow: 1 };

/** The pair, as a real number, that turns so many times within the trained length. */
const border = (dim, base, trained, turns) =>
  (dim * Math.log(trained / (turns * 2 * Math.PI))) / (2 * Math.log(base));

/** The pairs between which the ramp rises. */
const ends = (dim, base, trained) => [
  Math.max(Math.floor(border(dim, base, trained, YARN.fast)), 0),
  Math.min(Math.ceil(border(dim, base, trained, YARN.slow)), dim - 1),
];

/** Whether there is a ramp: not where every pair turns more often than the formula leaves alone. */
export function hasRamp(dim, base, trained) {
  const [low, high] = ends(dim, base, trained);
  return low <= high;
}

/** YaRN's ramp: 0 where a pair is left alone, 1 where it is interpolated in full. */
export function yarnRamp(dim, base, trained) {
  let [low, high] = ends(dim, base, trained);
  if (high === low) high += 0.001;
  return Array.from({ length: Math.floor(dim / 2) }, (_, i) =>
    Math.min(Math.max((i - low) / (high - low), 0), 1),
  );
}

/** YaRN: ω_i (1 − r_i (1 − 1/s)). */
export function yarn(dim, base, factor, trained) {
  const ramp = yarnRamp(dim, base, trained);
  return geometric(dim, base).map((omega, i) => omega * (1 - ramp[i] * (1 - 1 / factor)));
}

/** What YaRN multiplies cosines and sines with: 0.1 ln s + 1. */
export const yarnAttention = (factor) => (factor > 1 ? 0.1 * Math.log(factor) + 1 : 1);

export const LLAMA3 = { low: 1, high: 4 };

/** Llama 3: by the turns within the trained length, divided in full up to 1, left alone from 4 on. */
export const llama3 = (dim, base, factor, trained) =>
  geometric(dim, base).map((omega) => {
    const turns = (trained * omega) / (2 * Math.PI);
    const kept = Math.min(Math.max((turns - LLAMA3.low) / (LLAMA3.high - LLAMA3.low), 0), 1);
    return omega * (1 - (1 - kept) * (1 - 1 / factor));
  });
