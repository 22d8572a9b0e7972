// The binary counter that sinusoids are compared with.

/** Bit b of a position: it flips every 2^b positions. */
export const bit = (position, b) => Math.floor(position / 2 ** b) % 2;
