// Section 11: angles met in training and never met, and what each method does about them.

import { createButtons } from "../interface/choices.js";
import { el, say, table } from "../interface/dom.js";
import { createField } from "../interface/fields.js";
import { significant } from "../interface/numbers.js";
import {
  aboutArcs,
  aboutDrift,
  aboutNear,
  aboutPrecision,
  kindsOf,
} from "../prose/long.js";
import { longSchedulesOf } from "../state/facts.js";
import { METHODS } from "../state/limits.js";
import { createArcs } from "./arcs.js";
import { createDrift } from "./drift.js";

const NEEDS = ["dim", "base", "factor", "trained", "method"];
const SAYS = { arcs: aboutArcs, near: aboutNear, drift: aboutDrift, precision: aboutPrecision };

/** Fills the section. */
export function createLong(root, context) {
  const { store, scheduler } = context;
  const live = (name) => root.querySelector(`[data-live="${name}"]`);
  const fields = [
    createField(store, "trained", "Trained length L₀", { by: "ratio", id: "long-trained" }),
    createField(store, "factor", "Target, in trained lengths", { by: "ratio", id: "long-factor" }),
  ];
  root.querySelector("[data-long]").append(...fields.map(({ element }) => element));
  const host = root.querySelector("[data-method]").appendChild(el("div"));
  createButtons(host, context, "method", "Method", Object.entries(METHODS));
  createArcs(root, context, NEEDS);
  createDrift(root, context, NEEDS);
  scheduler.add(root, NEEDS, (state) => {
    fields.forEach((field) => field.update(state));
    for (const [name, about] of Object.entries(SAYS)) say(live(name), about(state));
    live("methods").replaceChildren(...(longSchedulesOf(state) ? [methods(state)] : []));
  });
}

function methods(state) {
  const found = longSchedulesOf(state);
  const rows = Object.entries(METHODS).map(([method, name]) => {
    const { whole, within, fresh } = kindsOf(state, method);
    const slowed = found.none[0] / found[method][0];
    return [name, whole, within, fresh, `÷ ${significant(slowed, 3)}`].map(String);
  });
  return table(
    "How many pairs met every angle, stay within their arc, or come to new angles; the fastest pair's speed.",
    ["", "whole", "within", "new", "fastest"],
    rows,
  );
}
