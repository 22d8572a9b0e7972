// The colors of the ground that the page stands on, as its style sheet says them.

import { LINES, scale } from "./palettes.js";

/** Colors of the current theme; figures are drawn again when it changes. */
export function look() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const theme = of("theme");
  return {
    theme,
    ground: of("ground"),
    ink: of("ink"),
    soft: of("soft"),
    faint: of("faint"),
    accent: of("accent"),
    lines: LINES[theme],
    font: style.fontFamily,
    scale: Number(of("scale")) || 1,
    signed: (low, high) => scale(theme, low, high),
    sizes: (low, high) => scale("cividis", low, high),
    angles: (low, high) => scale("twilight", low, high),
  };
}
