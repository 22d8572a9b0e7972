// What follows from the state and is needed by several figures; the last answer is kept.

import { CONVENTIONS, channels, pairing } from "../math/conventions.js";
import { gram } from "../math/similarity.js";
import { frequency, value, wavelength } from "../math/sincos.js";

function kept(compute) {
  let key;
  let answer;
  return (...given) => {
    const asked = given.join("|");
    if (asked !== key) [key, answer] = [asked, compute(...given)];
    return answer;
  };
}

/** The channels of a width. */
export const channelsOf = kept(channels);

/** The wavelength of every channel; that of a column of zeros has no end. */
export const wavelengthsOf = kept((convention, dim, base) =>
  channelsOf(convention, dim).map((channel) =>
    channel.kind === "zero" ? Infinity : wavelength(frequency(base, channel)),
  ),
);

/** Its pairs of sine and cosine, and the channels that have no partner. */
export const pairsOf = kept(pairing);

/** The frequencies of the pairs. */
export const frequenciesOf = kept((convention, dim, base) =>
  pairsOf(convention, dim).pairs.map((pair) => frequency(base, pair)),
);

/** All dot products of the table, as profiles over difference and sum of two positions. */
export const gramOf = kept((convention, dim, base, length) =>
  gram(channelsOf(convention, dim), base, CONVENTIONS[convention].first, length),
);

/** One row of the table, at any position. */
export const rowOf = ({ convention, dim, base }, position) =>
  channelsOf(convention, dim).map((channel) =>
    value(channel, base, position + CONVENTIONS[convention].first),
  );

/** The pair of a channel, with its number among the pairs; nothing for one without a partner. */
export function pairAt({ convention, dim, dimension }) {
  const { pairs } = pairsOf(convention, dim);
  const index = pairs.findIndex((pair) => pair.sin === dimension || pair.cos === dimension);
  return index < 0 ? null : { index, ...pairs[index] };
}
