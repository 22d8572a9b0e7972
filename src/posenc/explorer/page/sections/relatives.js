// Section 8: the encodings that act inside attention.

import { createBias } from "./bias.js";
import { createRotary } from "./rotary.js";
import { createScaling } from "./scaling.js";

/** Fills the section. */
export function createRelatives(root, context) {
  createRotary(root, context);
  createBias(root, context);
  createScaling(root, context);
}
