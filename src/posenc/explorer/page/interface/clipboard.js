// Copying, where the browser lets a page do so; elsewhere the text is shown, ready to be copied.

import { el } from "./dom.js";

/** Copies text and says so; without permission it is laid out, selected, in a small window. */
export async function copy(text, tell) {
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  } catch {
    offer(text);
  }
}

function offer(text) {
  const area = el("textarea", { readonly: true, rows: "8", "aria-label": "Text to copy" }, text);
  const close = el("button", { type: "button", on: { click: () => dialog.close() } }, "Close");
  const dialog = el(
    "dialog",
    { "aria-label": "Copy this text", on: { close: () => dialog.remove() } },
    el("p", {}, "Copy this text:"),
    area,
    close,
  );
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}
