// Colors for numbers: signed around zero, sizes from small to large, angles round the circle.

import { CIVIDIS, TWILIGHT } from "./color_tables.js";

const STOPS = {
  light: ["#0b3c6f", "#3b7fb8", "#a9cce3", "#f7f5f0", "#f2b999", "#d0623e", "#7d1d12"],
  dark: ["#9ed0ff", "#4b93d1", "#27507a", "#17181c", "#7a3a28", "#dc7148", "#ffc9a3"],
};

export const LINES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b"],
  dark: ["#56b4e9", "#e69f00", "#2fc59b", "#e39ac5", "#8fd0ff", "#f0e442"],
};

const SHADES = 256;

const channel = (hex, at) => parseInt(hex.slice(1 + 2 * at, 3 + 2 * at), 16);

function table(stops) {
  return Array.from({ length: SHADES }, (_, shade) => {
    const at = (shade / (SHADES - 1)) * (stops.length - 1);
    const below = Math.min(Math.floor(at), stops.length - 2);
    const part = at - below;
    return [0, 1, 2].map((c) =>
      Math.round(channel(stops[below], c) * (1 - part) + channel(stops[below + 1], c) * part),
    );
  });
}

const shades = (digits) =>
  Array.from({ length: SHADES }, (_, shade) =>
    [0, 1, 2].map((c) => channel(`#${digits.slice(6 * shade, 6 * shade + 6)}`, c)),
  );

const TABLES = {
  light: table(STOPS.light),
  dark: table(STOPS.dark),
  cividis: shades(CIVIDIS),
  twilight: shades(TWILIGHT),
};
const PACKED = Object.fromEntries(
  Object.entries(TABLES).map(([name, rows]) => [
    name,
    Uint32Array.from(rows, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0),
  ]),
);

/** A scale: numbers from low to high in the colors of a palette. */
export function scale(name, low, high) {
  const span = high - low || 1;
  const shade = (x) => {
    const at = Math.floor(((x - low) / span) * SHADES);
    return at < 0 ? 0 : at >= SHADES ? SHADES - 1 : at;
  };
  return {
    name,
    low,
    high,
    packed: PACKED[name],
    shade,
    rgb: (x) => TABLES[name][shade(x)],
    css: (x) => `rgb(${TABLES[name][shade(x)].join(" ")})`,
  };
}

/** Black or white, whichever is easier to read on a color. */
export function inkOn([r, g, b]) {
  const linear = [r, g, b].map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return light > 0.179 ? "#111111" : "#ffffff";
}
