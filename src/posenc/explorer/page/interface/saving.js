// A figure as PNG, SVG, CSV or JSON, each with the parameters and the version that made it.

import { canvasPen } from "../draw/canvas_pen.js";
import { look } from "../draw/look.js";
import { svgPen } from "../draw/svg_pen.js";
import { NAMES } from "../state/defaults.js";
import { caption, watched } from "./caption.js";
import { el } from "./dom.js";

const WIDTH = 880;
const CAPTION = 26;

/** posenc's version, as the page was built with it. */
export const version = () => document.querySelector('meta[name="version"]').content;

/** The four buttons of a figure. */
export function saveButtons(options, store) {
  const kinds = { PNG: savePng, SVG: saveSvg, CSV: saveCsv, JSON: saveJson };
  const buttons = Object.entries(kinds).map(([kind, save]) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        "data-save": kind.toLowerCase(),
        "aria-label": `Save ${options.name} as ${kind}`,
        on: { click: () => save(options, store.get()) },
      },
      kind,
    ),
  );
  return el("div", { class: "save", role: "group", "aria-label": "Save" }, "Save ", buttons);
}

const parameters = (state) => Object.fromEntries(NAMES.map((name) => [name, state[name]]));

function drawn(pen, options, state, colors) {
  const asked = watched(state);
  const height = Math.round(options.height(WIDTH, asked.state));
  options.draw({ pen, state: asked.state, width: WIDTH, height, colors });
  const read = options.needs.filter((name) => asked.names.has(name));
  const words = caption(version(), state, read);
  pen.text(words, 12, height + CAPTION / 2, { fill: colors.soft, size: 11 });
}

function savePng(options, state) {
  const [canvas, colors] = [el("canvas"), look()];
  const height = Math.round(options.height(WIDTH, state)) + CAPTION;
  drawn(canvasPen(canvas, WIDTH, height, 2, colors), options, state, colors);
  // At once, not by toBlob: that waits until the browser is idle, for seconds on a busy page.
  const bytes = atob(canvas.toDataURL("image/png").split(",")[1]);
  const data = Uint8Array.from(bytes, (c) => c.charCodeAt(0));
  save(`${options.name}.png`, "image/png", data);
}

function saveSvg(options, state) {
  const colors = look();
  const height = Math.round(options.height(WIDTH, state)) + CAPTION;
  const pen = svgPen(WIDTH, height, colors);
  drawn(pen, options, state, colors);
  const about = JSON.stringify({ version: version(), parameters: parameters(state) });
  save(`${options.name}.svg`, "image/svg+xml", pen.document(options.label, about));
}

function saveCsv(options, state) {
  const { columns, count, row } = options.data(state);
  const lines = [`# ${JSON.stringify({ version: version(), ...parameters(state) })}`];
  lines.push(columns.map(quoted).join(","));
  for (let r = 0; r < count; r++) lines.push(row(r).map(quoted).join(","));
  save(`${options.name}.csv`, "text/csv", `${lines.join("\n")}\n`);
}

const quoted = (cell) =>
  /[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell);

function saveJson(options, state) {
  const { columns, count, row } = options.data(state);
  const about = { posenc: version(), figure: options.name, parameters: parameters(state), columns };
  const rows = Array.from({ length: count }, (_, r) => Array.from(row(r)));
  save(`${options.name}.json`, "application/json", `${JSON.stringify({ ...about, rows })}\n`);
}

const save = (name, type, data) => download(name, new Blob([data], { type }));

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: `posenc-${name}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
