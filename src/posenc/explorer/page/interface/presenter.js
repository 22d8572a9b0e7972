// Presenting: one section at a time, larger, with keys to go on.

import { SECTION_IDS } from "../state/defaults.js";
import { el, say } from "./dom.js";

/** Fills the place beside the contents; contents.here() names the section before the reader. */
export function createPresenter(host, { store, scheduler }, contents) {
  const go = (by) => {
    const at = SECTION_IDS.indexOf(store.get().present) + by;
    if (at >= 0 && at < SECTION_IDS.length) store.set({ present: SECTION_IDS[at] });
  };
  const button = (id, words, name, click) =>
    el("button", { id, type: "button", "aria-label": name, on: { click } }, words);
  const toggle = () => store.set({ present: store.get().present ? "" : contents.here() });
  const back = button("present-back", "←", "Section before", () => go(-1));
  const on = button("present-on", "→", "Next section", () => go(1));
  const where = el("span", { role: "status" });
  const start = el("button", { id: "present", type: "button", on: { click: toggle } });
  host.append(back, where, on, start);

  const show = ({ present }) => {
    const root = document.documentElement;
    const at = SECTION_IDS.indexOf(present);
    const changed = (root.dataset.presenting ?? "") !== present;
    if (present) root.dataset.presenting = present;
    else delete root.dataset.presenting;
    for (const id of SECTION_IDS) {
      document.getElementById(id).hidden = Boolean(present) && id !== present;
    }
    for (const each of [back, where, on]) each.hidden = !present;
    back.disabled = at === 0;
    on.disabled = at === SECTION_IDS.length - 1;
    say(where, present ? `${at + 1} of ${SECTION_IDS.length}` : "");
    say(start, present ? "Leave" : "Present");
    if (changed) scheduler.redrawAll();
    return changed;
  };
  let last = store.get().present;
  show(store.get());
  store.listen((state) => {
    if (!show(state)) return;
    const section = document.getElementById(state.present || last);
    section.tabIndex = -1;
    section.scrollIntoView({ behavior: "instant" });
    section.focus({ preventScroll: true });
    last = state.present;
  });
  listen(store, go);
}

/** Arrows and Page Up and Down go on, but where a figure or a field has them for itself. */
function listen(store, go) {
  const steps = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (!store.get().present || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") store.set({ present: "" });
    if (event.defaultPrevented || event.target.closest(".stage, input, select, textarea")) return;
    const by = steps[event.key];
    if (!by) return;
    event.preventDefault();
    go(by);
  });
}
