// The page: one state, its controls, and the sections that show it.

import { announceWhereTheReaderIs } from "./interface/announcing.js";
import { say } from "./interface/dom.js";
import { createContents } from "./interface/contents.js";
import { createControls } from "./interface/controls.js";
import { listenEverywhere } from "./interface/keyboard.js";
import { createPlayer } from "./interface/player.js";
import { createPresenter } from "./interface/presenter.js";
import { createScheduler } from "./interface/scheduler.js";
import { notices } from "./prose/notices.js";
import { createBiases } from "./sections/biases.js";
import { createClocks } from "./sections/clocks.js";
import { createCurves } from "./sections/curves.js";
import { createDecoder } from "./sections/decoder.js";
import { createEncoder } from "./sections/encoder.js";
import { createExercises } from "./sections/exercises.js";
import { createGrid } from "./sections/grid.js";
import { createLong } from "./sections/long.js";
import { createMatrix } from "./sections/matrix.js";
import { createRelatives } from "./sections/relatives.js";
import { createSentenceSection } from "./sections/sentence.js";
import { createShift } from "./sections/shift.js";
import { createSimilarity } from "./sections/similarity.js";
import { createSlowly } from "./sections/slowly.js";
import { createWhy } from "./sections/why.js";
import { parsed, written } from "./state/link.js";
import { createStore } from "./state/store.js";

const SECTIONS = {
  why: createWhy,
  matrix: createMatrix,
  curves: createCurves,
  clocks: createClocks,
  similarity: createSimilarity,
  shift: createShift,
  "sentence-section": createSentenceSection,
  relatives: createRelatives,
  encoder: createEncoder,
  slowly: createSlowly,
  long: createLong,
  biases: createBiases,
  decoder: createDecoder,
  grid: createGrid,
  exercises: createExercises,
};

const { state, ignored } = parsed(location.hash);
const store = createStore(state);
const scheduler = createScheduler(store);
const player = createPlayer(store);
const context = { store, scheduler, player };

const { tell } = createControls(document.getElementById("fields"), context);
for (const [id, create] of Object.entries(SECTIONS)) create(document.getElementById(id), context);
listenEverywhere(store, player);
const bar = document.getElementById("contents");
const contents = createContents(bar, [...document.querySelectorAll("main > section")]);
createPresenter(document.getElementById("presenting"), context, contents);
announceWhereTheReaderIs();

// The link holds the state, so sections are gone to without touching it.
for (const anchor of document.querySelectorAll("nav a, a.skip, a.to")) {
  anchor.addEventListener("click", (event) => {
    event.preventDefault();
    const target = document.querySelector(anchor.getAttribute("href"));
    if (store.get().present && target.matches("section")) store.set({ present: target.id });
    target.scrollIntoView();
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
  });
}

const panel = document.getElementById("panel");
const wide = matchMedia("(min-width: 1000px)");
const fold = () => (panel.open = wide.matches);
wide.addEventListener("change", fold);
fold();

// What a link held in vain is said until the reader goes on from there.
let unread = ignored;
store.listen(() => (unread = []));

const notice = document.getElementById("notices");
scheduler.add(document.getElementById("panel"), null, (now) => {
  say(document.getElementById("summary"), summary(now));
  const lines = [...notices(now), ...unread.map((line) => `The link was read without ${line}`)];
  say(notice, lines.join(" "));
});

const summary = ({ length, dim, base, position, dimension, offset }) =>
  `L ${length} · d ${dim} · n ${base} · p ${position} · j ${dimension} · k ${offset}`;

// The link follows a little later: browsers allow few changes of an address in a second.
let waiting = 0;
store.listen(() => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    try {
      history.replaceState(null, "", written(store.get()) || location.pathname + location.search);
    } catch {
      // A frame inside a notebook has no address of its own.
    }
  }, 250);
});
addEventListener("hashchange", () => {
  if (!location.hash.includes("=")) return; // a section's own name is no state
  const read = parsed(location.hash);
  store.set(read.state);
  if (read.ignored.length) tell(`The link was read without ${read.ignored.join(" ")}`);
});
