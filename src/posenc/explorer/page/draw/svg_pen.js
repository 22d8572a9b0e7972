// A pen that writes SVG: the strokes of the canvas pen, as a document.

import { raster } from "./raster.js";

const escaped = (text) =>
  String(text).replace(
    /[&<>"]/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c],
  );

const short = (x) => Number(x.toFixed(2));

const style = ({ stroke, width = 1, dash = [], fill, opacity = 1 }) =>
  `fill="${fill ?? "none"}"${opacity < 1 ? ` fill-opacity="${opacity}"` : ""}` +
  (stroke ? ` stroke="${stroke}" stroke-width="${width}"` : "") +
  (dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "");

/** A pen for a picture of this size; `document()` is what it has written. */
export function svgPen(width, height, colors) {
  const parts = [];
  return {
    ratio: 1,
    line(x1, y1, x2, y2, look) {
      const [a, b, c, d] = [x1, y1, x2, y2].map(short);
      parts.push(`<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" ${style(look)}/>`);
    },
    polyline(points, look) {
      const listed = Array.from(points, short).join(" ");
      parts.push(`<${look.fill ? "polygon" : "polyline"} points="${listed}" ${style(look)}/>`);
    },
    rect(x, y, w, h, look) {
      const [a, b, c, d] = [x, y, w, h].map(short);
      parts.push(`<rect x="${a}" y="${b}" width="${c}" height="${d}" ${style(look)}/>`);
    },
    circle(x, y, r, look) {
      parts.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${short(r)}" ${style(look)}/>`);
    },
    text(text, x, y, { fill, size = 12, align = "left", weight = 400, turn = 0 }) {
      const anchor = { left: "start", center: "middle", right: "end" }[align];
      const rotated = turn ? ` rotate(${short((turn * 180) / Math.PI)})` : "";
      parts.push(
        `<text transform="translate(${short(x)} ${short(y)})${rotated}" text-anchor="${anchor}" ` +
          `dominant-baseline="central" font-size="${size}" font-weight="${weight}" ` +
          `fill="${fill ?? colors.ink}">${escaped(text)}</text>`,
      );
    },
    cells(x, y, w, h, columns, rows, shades) {
      const picture = raster(columns, rows, shades).toDataURL("image/png");
      parts.push(
        `<image x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" ` +
          `preserveAspectRatio="none" image-rendering="pixelated" href="${picture}"/>`,
      );
    },
    document(title, about) {
      return (
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
        `viewBox="0 0 ${width} ${height}" font-family="${escaped(colors.font)}">` +
        `<title>${escaped(title)}</title><metadata>${escaped(about)}</metadata>` +
        `<rect width="${width}" height="${height}" fill="${colors.ground}"/>` +
        `${parts.join("\n")}</svg>\n`
      );
    },
  };
}
