// Axes: round numbers, a frame, labels with units.

/** About `count` round numbers from low to high. */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** The same with whole numbers only. */
export const wholeTicks = (low, high, count) =>
  ticks(low, high, count).filter((t) => Number.isInteger(t));

/** Powers of ten from low to high. */
export function decades(low, high) {
  const found = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.0001; e++)
    found.push(10 ** e);
  return found;
}

/** x cut off after so many significant digits: a mark that never lies beyond x. */
export function below(x, digits = 2) {
  const power = 10 ** (Math.floor(Math.log10(x)) - digits + 1);
  return Number((Math.floor(x / power + 1e-9) * power).toPrecision(digits));
}

/** A linear map from numbers to pixels. */
export const linearScale = (low, high, from, to) => (x) =>
  from + ((x - low) / (high - low || 1)) * (to - from);

/** A logarithmic one. */
export const logScale = (low, high, from, to) => {
  const inner = linearScale(Math.log(low), Math.log(high), from, to);
  return (x) => inner(Math.log(x));
};

/**
 * Frame, ticks and labels around box = { x, y, w, h }.
 *
 * Each axis is { at: number → pixel, marks: numbers, label, name?: number → text, lines? }.
 */
export function axes(pen, colors, box, { x, y }) {
  const { soft, faint } = colors;
  const bottom = box.y + box.h;
  for (const mark of x?.marks ?? []) {
    const at = x.at(mark);
    if (x.lines) pen.line(at, box.y, at, bottom, { stroke: faint });
    else pen.line(at, bottom, at, bottom + 4, { stroke: soft });
    pen.text(x.name ? x.name(mark) : written(mark), at, bottom + 13, {
      fill: soft,
      align: "center",
      size: 11,
    });
  }
  for (const mark of y?.marks ?? []) {
    const at = y.at(mark);
    if (y.lines) pen.line(box.x, at, box.x + box.w, at, { stroke: faint });
    else pen.line(box.x - 4, at, box.x, at, { stroke: soft });
    pen.text(y.name ? y.name(mark) : written(mark), box.x - 7, at, {
      fill: soft,
      align: "right",
      size: 11,
    });
  }
  if (x?.label) {
    pen.text(x.label, box.x + box.w / 2, bottom + 31, {
      fill: colors.ink,
      align: "center",
      size: 12,
    });
  }
  if (y?.label) {
    pen.text(y.label, box.x - (y.gap ?? 46), box.y + box.h / 2, {
      fill: colors.ink,
      align: "center",
      size: 12,
      turn: -Math.PI / 2,
    });
  }
}

/** A number as people write it: a real minus sign, no needless zeros. */
export function written(x) {
  const text = Math.abs(x) >= 1e6 || (x && Math.abs(x) < 1e-4) ? x.toExponential(0) : String(x);
  return text.replaceAll("-", "−");
}
