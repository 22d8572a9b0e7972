// A pen that draws on a canvas. The SVG pen has the same strokes, so a figure is written once.

import { raster } from "./raster.js";

/** A pen for a canvas of so many CSS pixels, at the resolution of the screen. */
export function canvasPen(canvas, width, height, ratio, colors) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = colors.ground;
  ctx.fillRect(0, 0, width, height);

  const stroke = ({ stroke: color, width: thick = 1, dash = [] }) => {
    if (!color) return;
    ctx.strokeStyle = color;
    ctx.lineWidth = thick;
    ctx.setLineDash(dash);
    ctx.stroke();
  };
  const fill = ({ fill: color, opacity = 1 }) => {
    if (!color) return;
    ctx.globalAlpha = opacity;
    ctx.fillStyle = color;
    ctx.fill();
    ctx.globalAlpha = 1;
  };
  return {
    ratio,
    line(x1, y1, x2, y2, style) {
      ctx.beginPath();
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
      stroke(style);
    },
    polyline(points, style) {
      ctx.beginPath();
      ctx.lineJoin = "round";
      for (let i = 0; i < points.length; i += 2) ctx.lineTo(points[i], points[i + 1]);
      if (style.fill) ctx.closePath();
      fill(style);
      stroke(style);
    },
    rect(x, y, w, h, style) {
      ctx.beginPath();
      ctx.rect(x, y, w, h);
      fill(style);
      stroke(style);
    },
    circle(x, y, r, style) {
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      fill(style);
      stroke(style);
    },
    text(text, x, y, { fill: color, size = 12, align = "left", weight = 400, turn = 0 }) {
      ctx.save();
      ctx.translate(x, y);
      ctx.rotate(turn);
      ctx.font = `${weight} ${size * (colors.scale ?? 1)}px ${colors.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.fillStyle = color ?? colors.ink;
      ctx.fillText(text, 0, 0);
      ctx.restore();
    },
    cells(x, y, w, h, columns, rows, shades) {
      ctx.imageSmoothingEnabled = false;
      ctx.drawImage(raster(columns, rows, shades), x, y, w, h);
    },
  };
}
