// The panel that steers every figure: fields, choices, and what to do with the state.

import { CONVENTIONS } from "../math/conventions.js";
import { written } from "../state/link.js";
import { createSelect } from "./choices.js";
import { copy } from "./clipboard.js";
import { el, say } from "./dom.js";
import { createField } from "./fields.js";
import { playButton } from "./player.js";
import { python } from "./python.js";
import { createTheme } from "./theme.js";

const FIELDS = [
  ["length", "Length L", { by: "ratio" }],
  ["dim", "Dimensions d", { by: "ratio" }],
  ["base", "Base n", { by: "ratio" }],
  ["position", "Position p", {}],
  ["dimension", "Dimension j", {}],
  ["offset", "Offset k", {}],
];

/** Fills the panel. */
export function createControls(host, context) {
  const { store, scheduler, player } = context;
  const told = el("p", { class: "told", role: "status" });
  let over = 0;
  const tell = (text) => {
    clearTimeout(over);
    say(told, text);
    over = setTimeout(() => say(told, ""), 3000);
  };
  const titles = Object.entries(CONVENTIONS).map(([name, { title }]) => [name, title]);
  const parts = [
    ...FIELDS.map(([name, words, how]) => createField(store, name, words, how)),
    createSelect(store, "convention", "Convention", titles),
    createSelect(store, "dtype", "Numbers in", [
      ["float64", "float64"],
      ["float32", "float32"],
      ["bfloat16", "bfloat16"],
    ]),
    createField(store, "speed", "Speed, positions a second", { by: "ratio" }),
  ];
  const play = el("button", { type: "button", id: "play", class: "main" });
  playButton(player, play, "position", "Play");
  const actions = el(
    "div",
    { class: "actions" },
    play,
    button("reset", "Reset", () => {
      player.stop();
      store.reset();
    }),
    button("copy-link", "Copy link", () => copy(link(store.get()), tell)),
    button("copy-python", "Copy Python", () => copy(python(store.get()), tell)),
  );
  store.listen((_, __, anew) => anew && say(told, ""));
  host.append(...parts.map((part) => part.element), actions, createTheme(scheduler), told);
  scheduler.add(host, null, (state) => parts.forEach((part) => part.update(state)));
  return { tell };
}

const button = (id, words, click) => el("button", { type: "button", id, on: { click } }, words);

const link = (state) => location.href.split("#")[0] + written(state);
