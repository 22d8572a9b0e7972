// Section 9: attention with the encoding off and on, and one block of the encoder.

import { createSentence } from "../interface/sentence_field.js";
import { createButtons } from "../interface/choices.js";
import { say } from "../interface/dom.js";
import { aboutScheme } from "../prose/encoder.js";
import { encoderRunOf } from "../state/facts.js";
import { SCHEMES } from "../state/limits.js";
import { createAttention } from "./attention.js";
import { createFlow } from "./flow.js";

/** Fills the section. */
export function createEncoder(root, context) {
  const field = root.querySelector("#attended");
  createSentence(field, root.querySelector("#attended-problem"), context, "attended");
  const run = ({ attended, base, scheme }) => encoderRunOf(attended, base, scheme);
  createButtons(
    root.querySelector("[data-schemes]"),
    context,
    "scheme",
    "How order is told",
    Object.entries(SCHEMES),
  );
  context.scheduler.add(root, ["scheme", "attended", "base"], (state) =>
    say(root.querySelector('[data-live="scheme"]'), aboutScheme(state)),
  );
  createAttention(root, context, run);
  createFlow(root, context, run);
}
