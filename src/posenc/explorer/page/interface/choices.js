// A choice of one among few: a list to open, or buttons side by side.

import { el } from "./dom.js";

/** A labeled list: options are [value, words]. */
export function createSelect(store, name, words, options) {
  const select = el(
    "select",
    { id: name, on: { change: () => store.set({ [name]: select.value }) } },
    options.map(([value, text]) => el("option", { value }, text)),
  );
  const element = el("div", { class: "field" }, el("label", { for: name }, words), select);
  return { element, update: (state) => (select.value = state[name]) };
}

/** Buttons side by side, of which one is pressed. */
export function createButtons(host, { store, scheduler }, name, words, options) {
  const buttons = options.map(([value, text]) =>
    el("button", { type: "button", on: { click: () => store.set({ [name]: value }) } }, text),
  );
  host.append(el("div", { class: "buttons", role: "group", "aria-label": words }, buttons));
  scheduler.add(host, [name], (state) =>
    buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(state[name] === options[i][0])),
    ),
  );
}
