// Section 9: attention with the encoding off and on, and one block of the encoder.

import { createSentence } from "../interface/sentence_field.js";
import { forward, randomParameters } from "../math/encoder.js";
import { add } from "../math/matrices.js";
import { paperRows } from "../math/order.js";
import { embedding, tokens } from "../math/sentences.js";
import { MODEL } from "../state/defaults.js";
import { createAttention } from "./attention.js";
import { createFlow } from "./flow.js";

const { dim, heads, inner, seed } = MODEL;

/** Fills the section. */
export function createEncoder(root, context) {
  const field = root.querySelector("#attended");
  createSentence(field, root.querySelector("#attended-problem"), context, "attended");
  const parameters = randomParameters(dim, inner, seed);
  let key = "";
  let found;
  /** Every stage without the encoding and with it; computed once for a sentence and a base. */
  const run = ({ attended, base }) => {
    if (key === `${base} ${attended}`) return found;
    const words = tokens(attended).kept;
    const embeddings = words.map((word) => embedding(word, dim, Math.sqrt(dim)));
    const encoding = paperRows(words.length, dim, base);
    const sum = add(embeddings, encoding);
    const off = forward(embeddings, parameters, heads);
    const on = { embeddings, encoding, sum, ...forward(sum, parameters, heads) };
    key = `${base} ${attended}`;
    found = { words, off, on };
    return found;
  };
  createAttention(root, context, run);
  createFlow(root, context, run);
}
