// Section 9: attention with the encoding off and on, and one block of the encoder.

import { createSentence } from "../interface/sentence_field.js";
import { encoderRunOf } from "../state/facts.js";
import { createAttention } from "./attention.js";
import { createFlow } from "./flow.js";

/** Fills the section. */
export function createEncoder(root, context) {
  const field = root.querySelector("#attended");
  createSentence(field, root.querySelector("#attended-problem"), context, "attended");
  const run = ({ attended, base }) => encoderRunOf(attended, base);
  createAttention(root, context, run);
  createFlow(root, context, run);
}
