// Random numbers that are the same on every machine: seeded, never learned.

/** Numbers in [0, 1), mulberry32 by Tommy Ettinger (public domain). */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Numbers of the normal distribution, by Box and Muller. */
export function normal(seed) {
  const draw = uniform(seed);
  return () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
}

/** A seed for a word: the same word, the same vector (FNV-1a). */
export function seedOf(word) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(word)) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash;
}

/** 0 … count − 1 in an order of the seed's; seed 0 keeps them as they are. */
export function order(count, seed) {
  const places = Array.from({ length: count }, (_, i) => i);
  if (!seed) return places;
  const draw = uniform(seed);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(draw() * (i + 1));
    [places[i], places[j]] = [places[j], places[i]];
  }
  return places;
}
