// A field for a sentence: never empty, never too long, always in words what is wrong.

import { MOST_TOKENS, tokens } from "../math/sentences.js";
import { say } from "./dom.js";

const EMPTY = "Type a word or two, as: the cat sat. The figures keep the last sentence.";

const complaint = (text) => {
  const { kept, dropped } = tokens(text);
  if (!kept.length) return EMPTY;
  return dropped
    ? `Only the first ${MOST_TOKENS} tokens are shown; ${dropped} more were given.`
    : "";
};

/** Ties a field to the state; without a token the last sentence stays in the figures. */
export function createSentence(input, problem, { store, scheduler }, name) {
  input.addEventListener("input", () => {
    say(problem, complaint(input.value));
    if (tokens(input.value).kept.length) store.set({ [name]: input.value });
  });
  const show = (state) => {
    input.value = state[name];
    say(problem, complaint(state[name]));
  };
  scheduler.add(input, [name], (state) => document.activeElement === input || show(state));
  // The field may hold what the state never took: an empty sentence.
  store.listen((state, _, anew) => anew && show(state));
}
