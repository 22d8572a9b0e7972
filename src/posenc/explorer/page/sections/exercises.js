// Section 15: questions with answers that the page checks.

import { el, say } from "../interface/dom.js";
import { EXERCISES, judged, shown } from "../prose/exercises.js";
import { SECTION_IDS } from "../state/defaults.js";

/** Fills the section. */
export function createExercises(root, { store, scheduler }) {
  const list = root.querySelector("[data-exercises]");
  const items = EXERCISES.map((exercise, i) => item(exercise, i, store, () => count()));
  const count = () => {
    const solved = items.filter(({ solved }) => solved()).length;
    say(root.querySelector('[data-live="solved"]'), `${solved} of ${items.length} solved.`);
  };
  list.append(...items.map(({ element }) => element));
  scheduler.add(root, null, (state) => {
    for (const { update } of items) update(state);
    count();
  });
  store.listen((_, __, anew) => {
    if (!anew) return;
    for (const { clear } of items) clear();
    count();
  });
}

function item(exercise, i, store, tell) {
  const id = `exercise-${i}`;
  const place = SECTION_IDS.indexOf(exercise.section) + 1;
  const question = el("label", { for: id });
  const input = el("input", {
    ...{ id, type: "text", autocomplete: "off", "aria-describedby": `${id}-said` },
  });
  const said = el("p", { id: `${id}-said`, role: "status" });
  let right = false;
  const set = (found, words) => {
    right = found;
    say(said, words);
    said.dataset.right = String(found);
    tell();
  };
  const check = () => {
    const found = judged(exercise, store.get(), input.value);
    set(found.right, found.words);
  };
  input.addEventListener("keydown", (event) => event.key === "Enter" && check());
  input.addEventListener("input", () => set(false, ""));
  const button = (words, name, click) =>
    el("button", { type: "button", "aria-label": `${words} ${name}`, on: { click } }, words);
  const element = el(
    "li",
    { id: `${id}-item` },
    question,
    el(
      "div",
      { class: "answer" },
      input,
      button("Check", `exercise ${i + 1}`, check),
      button("Show", `the answer of exercise ${i + 1}`, () =>
        set(false, shown(exercise, store.get())),
      ),
      el("a", { class: "to", href: `#${exercise.section}` }, `Section ${place}`),
    ),
    said,
  );
  const clear = () => {
    input.value = "";
    set(false, "");
  };
  // Another question has another answer: what was said of the old one goes.
  const update = (state) => {
    const asked = exercise.ask(state);
    if (asked === question.textContent) return;
    say(question, asked);
    clear();
  };
  return { element, update, clear, solved: () => right };
}
