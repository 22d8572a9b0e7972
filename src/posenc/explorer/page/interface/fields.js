// A slider and a number box for one field; a bad number is refused in words, and put back.

import { LIMITS, read } from "../state/limits.js";
import { el, say } from "./dom.js";

const STEPS = 1000;

/** Sliders over several powers of ten move by ratio, the others by difference. */
const scales = {
  ratio: {
    at: (x, low, high) => (STEPS * Math.log(x / low)) / Math.log(high / low),
    value: (at, low, high) => low * (high / low) ** (at / STEPS),
  },
  difference: { at: (x) => x, value: (at) => at },
};

/** The field: { element, update(state) }; `id` tells two fields of one name apart. */
export function createField(store, name, words, { by = "difference", id = name } = {}) {
  const scale = scales[by];
  const box = el("input", {
    id,
    type: "text",
    inputmode: LIMITS[name].kind === "whole" ? "numeric" : "decimal",
    autocomplete: "off",
    "aria-describedby": `${id}-problem`,
  });
  const slider = el("input", { id: `${id}-slider`, type: "range", "aria-label": words });
  const problem = el("p", { id: `${id}-problem`, class: "problem", role: "alert" });
  // What was refused: said as long as it is true of the state, and not after a reset.
  let refused = null;
  const complain = (text, after) => {
    refused = text === null ? null : { text, after, said: complaint(text, after) };
    say(problem, refused?.said ?? "");
  };
  const complaint = (text, after) => {
    const found = read(name, text, store.get());
    return found.problem && [found.problem, ...after()].join(" ");
  };
  const kept = () => [`Kept ${shown(store.get()[name])}.`];
  const nothing = () => [];
  store.listen((_, changed, anew) => {
    if (refused && (anew || complaint(refused.text, refused.after) !== refused.said)) complain(null);
  });
  const put = (value) => {
    complain(null);
    store.set({ [name]: value });
  };
  box.addEventListener("input", () => {
    const { value } = read(name, box.value, store.get());
    if (value !== undefined) put(value);
  });
  box.addEventListener("change", () => {
    if (read(name, box.value, store.get()).problem) complain(box.value, kept);
    box.value = shown(store.get()[name]);
  });
  slider.addEventListener("input", () => {
    const { low, high, kind } = LIMITS[name];
    const state = store.get();
    const raw = scale.value(Number(slider.value), low(state), high(state));
    const value = kind === "whole" ? Math.round(raw) : Number(raw.toPrecision(3));
    if (read(name, value, state).problem) complain(value, nothing);
    else put(value);
  });

  const update = (state) => {
    const [low, high] = [LIMITS[name].low(state), LIMITS[name].high(state)];
    Object.assign(slider, by === "ratio" ? { min: 0, max: STEPS } : { min: low, max: high });
    slider.step = by === "ratio" || LIMITS[name].kind === "whole" ? 1 : 0.25;
    slider.value = scale.at(state[name], low, high);
    slider.setAttribute("aria-valuetext", shown(state[name]));
    if (document.activeElement !== box) box.value = shown(state[name]);
  };
  const element = el(
    "div",
    { class: "field" },
    el("label", { for: id }, words),
    box,
    slider,
    problem,
  );
  return { element, update };
}

const shown = (x) => String(x);
