// Text to tokens, and tokens to seeded random vectors.

import { normal, seedOf } from "./random.js";

export const MOST_TOKENS = 64;

/** Words and marks of a text, and how many were beyond the limit. */
export function tokens(text) {
  const all = text.match(/[\p{L}\p{N}_]+(?:['’][\p{L}]+)*|[^\s\p{L}\p{N}_]/gu) ?? [];
  return { kept: all.slice(0, MOST_TOKENS), dropped: Math.max(all.length - MOST_TOKENS, 0) };
}

/** The embedding of a word: normal numbers of variance 1/d from the word's own seed, × scale. */
export function embedding(word, dim, scale) {
  const draw = normal(seedOf(word.toLowerCase()));
  return Array.from({ length: dim }, () => (draw() / Math.sqrt(dim)) * scale);
}
