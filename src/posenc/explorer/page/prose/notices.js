// What the reader should know about the present choice.

import { CONVENTIONS, refusal } from "../math/conventions.js";

/** The notices, in a line each. */
export function notices({ convention, dim, base }) {
  const lines = [];
  const { odd, users } = CONVENTIONS[convention];
  if (dim % 2 && odd === "sine") {
    const shift = base === 1 ? "no shift of it is shown" : "exact shift unavailable for it";
    lines.push(`Odd dim: the last column is an unpaired sine; ${shift}.`);
  }
  if (dim % 2 && odd === "zero") lines.push("Odd dim: the last column is filled with zeros.");
  if (odd === "unpaired" && base !== 1) {
    lines.push("Every channel has a frequency of its own: no constant norm, no exact shift.");
  }
  if (odd === "unpaired" && base === 1) {
    lines.push("This convention pairs no channels; at base 1 all of them have one frequency.");
  }
  if (base === 1) lines.push("Base 1: every column turns at the same speed, once in 2π positions.");
  if (convention !== "paper") lines.push(`Used by ${users}.`);
  const without = Object.keys(CONVENTIONS).filter((name) => refusal(name, dim));
  if (without.length) lines.push(`Not at dim ${dim}: ${without.join(", ")}.`);
  return lines;
}
