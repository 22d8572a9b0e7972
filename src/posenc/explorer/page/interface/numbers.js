// Numbers as text.

const signed = (text) => text.replaceAll("-", "−");

/** Four decimals and a real minus sign; nothing is ever "−0.0000". */
export function fixed(x, digits = 4) {
  const text = x.toFixed(digits);
  return signed(Number(text) === 0 ? text.replace("-", "") : text);
}

/** So many significant digits, thousands apart by a thin space. */
export function significant(x, digits = 4) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e9)) return power(x, 2);
  return grouped(Number(x.toPrecision(digits)));
}

/** As 1.2 × 10⁻¹⁵. */
export function power(x, digits = 1) {
  if (!x) return "0";
  const [mantissa, exponent] = x.toExponential(digits).split("e");
  return `${signed(mantissa)}\u00a0×\u00a010${raised(Number(exponent))}`;
}

const HIGH = {
  "-": "⁻",
  0: "⁰",
  1: "¹",
  2: "²",
  3: "³",
  4: "⁴",
  5: "⁵",
  6: "⁶",
  7: "⁷",
  8: "⁸",
  9: "⁹",
};
const raised = (n) => [...String(n)].map((c) => HIGH[c]).join("");

/** 62830 as 62 830. */
export function grouped(x) {
  const [front, back] = signed(String(x)).split(".");
  const parted = front.length > 4 ? front.replace(/\B(?=(\d{3})+$)/g, "\u2009") : front;
  return back ? `${parted}.${back}` : parted;
}

/** A number as so many decimals hold it. */
export const rounded = (x, digits) => Number(x.toFixed(digits));

/** The least number of digits with which what is printed comes out as it is printed. */
export function enough(comesOut, least = 4) {
  let digits = least;
  while (digits < 15 && !comesOut(digits)) digits++;
  return digits;
}

/** A whole number with a real minus sign. */
export const whole = (x) => signed(String(x));

/** One of "1 position", "2 positions". */
export const counted = (n, thing) => `${grouped(n)} ${thing}${n === 1 ? "" : "s"}`;
