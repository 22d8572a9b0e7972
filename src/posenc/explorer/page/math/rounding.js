// What a number becomes in a narrower dtype.

/** x rounded to 8 significant bits, ties to even: bfloat16, straight from the double. */
export function toBfloat16(x) {
  if (x === 0 || !Number.isFinite(x)) return x;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), -126);
  const step = 2 ** (exponent - 7);
  return halfToEven(x / step) * step;
}

function halfToEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

export const ROUNDINGS = {
  float64: (x) => x,
  float32: Math.fround,
  bfloat16: toBfloat16,
};

/** How many of the positions 0 … length − 1 stay different numbers when held in bfloat16. */
export function distinctInBfloat16(length) {
  const seen = new Set();
  for (let p = 0; p < length; p++) seen.add(toBfloat16(p));
  return seen.size;
}
