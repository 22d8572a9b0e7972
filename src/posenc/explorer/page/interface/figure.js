// A figure: a canvas that can be pointed at and moved by keys, its numbers, and ways to save it.

import { canvasPen } from "../draw/canvas_pen.js";
import { look } from "../draw/look.js";
import { el } from "./dom.js";
import { cursorKeys } from "./keyboard.js";
import { numbersTable } from "./numbers_table.js";
import { saveButtons } from "./saving.js";

/**
 * Builds a figure inside `host`.
 *
 * options: name; label (what it shows, for those who do not see it); needs (fields); height(width,
 * state); draw(view) → hit(x, y, gesture) → patch; data(state); keys(event, state) → patch;
 * hover (whether mere pointing moves the cursor); heavy.
 */
export function createFigure(host, { store, scheduler }, options) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const stage = el(
    "div",
    {
      class: "stage",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "figure",
      "aria-label": `${options.label} Arrow keys move the cursor.`,
      "data-name": options.name,
    },
    canvas,
  );
  host.classList.add("figure");
  const numbers = numbersTable(options, store);
  const foot = el("div", { class: "foot" }, numbers.element, saveButtons(options, store));
  host.append(stage, foot);

  let hit = () => null;
  const paint = (state) => {
    const width = Math.floor(stage.clientWidth);
    if (!width) return;
    const height = Math.round(options.height(width, state));
    const colors = look();
    const pen = canvasPen(canvas, width, height, window.devicePixelRatio || 1, colors);
    canvas.style.height = `${height}px`;
    hit = options.draw({ pen, state, width, height, colors }) ?? (() => null);
    numbers.update(state);
  };
  const again = scheduler.add(host, options.needs, paint, { heavy: options.heavy });
  let seen = 0;
  new ResizeObserver(() => {
    if (stage.clientWidth !== seen) again();
    seen = stage.clientWidth;
  }).observe(stage);

  listen(stage, canvas, options, store, (...where) => hit(...where));
  return { stage, again };
}

// Scrolling moves the page under a resting pointer, which browsers report as a move: no gesture.
let place = "";
let resting = false;
document.addEventListener(
  "pointermove",
  ({ clientX, clientY }) => {
    const now = `${clientX} ${clientY}`;
    resting = now === place;
    place = now;
  },
  { capture: true },
);

function listen(stage, canvas, options, store, hit) {
  let gesture = null;
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    const patch = hit(event.clientX - box.left, event.clientY - box.top, gesture, event.type);
    if (patch?.gesture) gesture = patch.gesture;
    if (patch?.state) store.set(patch.state);
  };
  stage.addEventListener("pointerdown", (event) => {
    gesture = "start";
    stage.setPointerCapture(event.pointerId);
    point(event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (gesture || (options.hover && !resting && event.pointerType === "mouse")) point(event);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, () => (gesture = null));
  }
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const state = store.get();
    const patch = options.keys?.(event.key, state) ?? cursorKeys(event.key, state);
    if (!patch) return;
    event.preventDefault();
    store.set(patch);
  });
}
