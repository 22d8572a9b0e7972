// One pixel a cell: the picture that heatmaps are scaled up from.

let shared;

/** A canvas of columns × rows pixels, used again by the next call. */
export function raster(columns, rows, shades) {
  shared ??= document.createElement("canvas");
  shared.width = columns;
  shared.height = rows;
  const ctx = shared.getContext("2d");
  const image = ctx.createImageData(columns, rows);
  new Uint32Array(image.data.buffer).set(shades);
  ctx.putImageData(image, 0, 0);
  return shared;
}
