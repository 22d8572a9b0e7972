// What section 9 says of the sentence.

import { counted, fixed, power } from "../interface/numbers.js";
import { encoderRunOf, placesOf } from "../state/facts.js";

const HEAD = 0;

/** The first word that occurs more than once: { word, places }; nothing where there is none. */
function repeated(words) {
  const lower = words.map((word) => word.toLowerCase());
  const second = lower.findIndex((word, i) => lower.indexOf(word) < i);
  if (second < 0) return null;
  const places = lower.flatMap((word, i) => (word === lower[second] ? [i] : []));
  return { word: words[places[0]], places };
}

const COUNTS = { 2: "two", 3: "three", 4: "four" };

/** What equal words are to attention without an encoding. */
export function aboutRepeated({ attended, base, scheme }) {
  const found = repeated(encoderRunOf(attended, base, scheme).words);
  if (!found) {
    return "Without an encoding equal words are one and the same, with equal rows and columns; this sentence repeats none.";
  }
  const many = COUNTS[found.places.length] ?? found.places.length;
  return `Without an encoding the ${many} “${found.word}” of this sentence are one and the same: equal rows, equal columns. ${aboutParting(attended, base, scheme)}`;
}

function aboutParting(attended, base, scheme) {
  if (scheme === "none") return "And so they stay: choose an encoding.";
  return placesOf(attended, base, scheme).joined
    ? "With it their rows part, but not all of their outputs."
    : "With it they part.";
}

/** How far the rows of two equal words are apart, off and on. */
export function aboutTwins({ attended, base, scheme }) {
  const { words, off, on } = encoderRunOf(attended, base, scheme);
  const found = repeated(words);
  if (!found) return "No word occurs twice: repeat one to see two equal rows.";
  const [first, second] = found.places;
  const apart = ({ weights }) =>
    Math.max(...weights[HEAD][first].map((v, c) => Math.abs(v - weights[HEAD][second][c])));
  const [without, withIt] = [apart(off), apart(on)];
  return (
    `The rows of “${words[first]}” (${first}) and “${words[second]}” (${second}) differ by ` +
    `${without ? power(without) : "exactly 0"} with the encoding off, and by ` +
    `${withIt === 0 ? "exactly 0" : withIt < 1e-3 ? power(withIt) : fixed(withIt)} with it on.`
  );
}

/** How order is told, and how far it changes the weights. */
export function aboutScheme({ attended, base, scheme }) {
  const { words, off, on } = encoderRunOf(attended, base, scheme);
  const how = {
    none: "Nothing tells the order: shuffle the words, and only the rows are shuffled",
    sinusoidal: "Sines and cosines are added to the embeddings, before everything else",
    learned: "A row a position is added to the embeddings; here the rows are seeded random, in a model they are learned, and there is none beyond the last",
    rotary: "Queries and keys are turned by their positions in every head; values and embeddings stay as they are",
    alibi: "A penalty in proportion to the distance is added to the scores; head 0 has the steeper slope",
    t5: "A number for the bucket of the distance is added to the scores; here the numbers are seeded random, in a model they are learned",
  }[scheme];
  const change = Math.max(
    ...on.weights[HEAD].flatMap((line, r) => line.map((v, c) => Math.abs(v - off.weights[HEAD][r][c]))),
  );
  const most = change ? (change < 1e-3 ? power(change) : fixed(change)) : "0";
  return `${how}. Over ${counted(words.length, "token")} the weights of head ${HEAD} change by ${most} at most.`;
}

/** What a stage is where the scheme makes it another; nothing where the common words hold. */
export function aboutStage({ attended, base, scheme }, stage) {
  if (stage === "output") return aboutOutput(placesOf(attended, base, scheme));
  const adds = scheme === "sinusoidal" || scheme === "learned";
  if (adds) return undefined;
  return {
    encoding: "Zeros: nothing is added to the embeddings.",
    sum: "The embeddings as they were: no vector knows its place yet.",
    queries: scheme === "rotary" ? "What a token looks for, turned by its position." : undefined,
    keys: scheme === "rotary" ? "What a token offers, turned by its position." : undefined,
    scores:
      scheme === "alibi" || scheme === "t5"
        ? "Q Kᵀ / √depth, and the bias of the distance."
        : undefined,
  }[stage];
}

function aboutOutput({ told, joined }) {
  if (!told) return "One vector a token, that knows its neighbors but not its place.";
  return joined
    ? "One vector a token, that knows its neighbors; of equal words some came out as one."
    : "One vector a token, that knows its neighbors and its place.";
}
