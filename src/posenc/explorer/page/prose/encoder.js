// What section 9 says of the sentence.

import { fixed, power } from "../interface/numbers.js";
import { encoderRunOf } from "../state/facts.js";

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
export function aboutRepeated({ attended, base }) {
  const found = repeated(encoderRunOf(attended, base).words);
  if (!found) {
    return "Without an encoding equal words are one and the same, with equal rows and columns; this sentence repeats none.";
  }
  const many = COUNTS[found.places.length] ?? found.places.length;
  return `Without an encoding the ${many} “${found.word}” of this sentence are one and the same: equal rows, equal columns. With it they part.`;
}

/** How far the rows of two equal words are apart, off and on. */
export function aboutTwins({ attended, base }) {
  const { words, off, on } = encoderRunOf(attended, base);
  const found = repeated(words);
  if (!found) return "No word occurs twice: repeat one to see two equal rows.";
  const [first, second] = found.places;
  const apart = ({ weights }) =>
    Math.max(...weights[HEAD][first].map((v, c) => Math.abs(v - weights[HEAD][second][c])));
  const [without, withIt] = [apart(off), apart(on)];
  return (
    `The rows of “${words[first]}” (${first}) and “${words[second]}” (${second}) differ by ` +
    `${without ? power(without) : "exactly 0"} with the encoding off, and by ` +
    `${withIt < 1e-3 ? power(withIt) : fixed(withIt)} with it on.`
  );
}
