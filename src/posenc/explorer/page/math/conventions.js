// The sinusoidal conventions as data: what each channel of each of them holds.
//
// A channel is { kind, top, bottom }: kind((p + first) / n^(top / bottom)), and "zero" is a column
// that holds nothing. Everything else about a convention follows from its channels.

const ZERO = { kind: "zero", top: 0, bottom: 1 };

const interleaved = (j, d) => ({ kind: j % 2 ? "cos" : "sin", top: j - (j % 2), bottom: d });

const halves = (shift, flip) => (j, d) => {
  const half = Math.floor(d / 2);
  if (j >= 2 * half) return ZERO;
  const inFront = j < half;
  return { kind: inFront !== flip ? "sin" : "cos", top: j % half, bottom: half - shift };
};

const perChannel = (step, first) => (j, d) => ({
  kind: (j + first) % 2 ? "cos" : "sin",
  top: step * (j + first),
  bottom: d,
});

export const CONVENTIONS = {
  paper: {
    title: "paper: sin and cos alternate",
    formula: "PE(p, 2i) = sin(p / n^(2i/d)), PE(p, 2i+1) = cos(p / n^(2i/d))",
    users: "Vaswani et al. 2017, the PyTorch tutorial, d2l, DistilBERT",
    channel: interleaved,
    first: 0,
    odd: "sine",
    smallest: 1,
  },
  concatenated: {
    title: "concatenated: [sin | cos]",
    formula: "[sin | cos] of p / n^(2i/d)",
    users: "MarianMT and Pegasus in transformers, RoFormer, XLNet, the TensorFlow tutorial",
    channel: halves(0, false),
    first: 0,
    odd: null,
    smallest: 2,
  },
  tensor2tensor: {
    title: "tensor2tensor: divisor h − 1",
    formula: "[sin | cos] of p / n^(i / (h − 1)), h = ⌊d/2⌋",
    users: "tensor2tensor, fairseq, M2M100, Whisper",
    channel: halves(1, false),
    first: 0,
    odd: "zero",
    smallest: 4,
  },
  timestep: {
    title: "timestep: [cos | sin]",
    formula: "[cos | sin] of p / n^(i / h), h = ⌊d/2⌋",
    users: "diffusers, DiT, GLIDE",
    channel: halves(0, true),
    first: 0,
    odd: "zero",
    smallest: 2,
  },
  per_dimension_one_based: {
    title: "per dimension, counted from 1",
    formula: "even k: sin(t / n^(k/d)), odd k: cos(t / n^(k/d)), t = p + 1, k = j + 1",
    users: "lecture slides",
    channel: perChannel(1, 1),
    first: 1,
    odd: "unpaired",
    smallest: 1,
  },
  per_dimension: {
    title: "per dimension",
    formula: "even j: sin(p / n^(j/d)), odd j: cos(p / n^(j/d))",
    users: "Caffe2",
    channel: perChannel(1, 0),
    first: 0,
    odd: "unpaired",
    smallest: 1,
  },
  double_exponent: {
    title: "double exponent: j read as i",
    formula: "even j: sin(p / n^(2j/d)), odd j: cos(p / n^(2j/d))",
    users: "old checkpoints: the paper's pair index i read as the channel index j",
    channel: perChannel(2, 0),
    first: 0,
    odd: "unpaired",
    smallest: 1,
  },
};

/** Why a convention has no such width, or "" if it has. */
export function refusal(name, dim) {
  const { odd, smallest } = CONVENTIONS[name];
  if (dim < smallest) return `the ${name} convention starts at dim ${smallest}`;
  if (dim % 2 && odd === null) {
    return `the ${name} convention has no odd width; use ${dim - 1} or ${dim + 1}`;
  }
  return "";
}

/** All channels of one width, in order. */
export function channels(name, dim) {
  const { channel } = CONVENTIONS[name];
  return Array.from({ length: dim }, (_, j) => channel(j, dim));
}

/**
 * Which channels belong together: each sine with the cosine of its own frequency.
 *
 * Returns { pairs: [{ sin, cos, top, bottom }], single: [j], zero: [j] } with channel numbers.
 */
export function pairing(name, dim) {
  const all = channels(name, dim);
  const byExponent = new Map();
  all.forEach((channel, j) => {
    if (channel.kind === "zero") return;
    const met = byExponent.get(channel.top) ?? { top: channel.top, bottom: channel.bottom };
    byExponent.set(channel.top, { ...met, [channel.kind]: j });
  });
  const groups = [...byExponent.values()];
  const whole = (g) => g.sin !== undefined && g.cos !== undefined;
  return {
    pairs: groups.filter(whole),
    single: groups.filter((g) => !whole(g)).map((g) => g.sin ?? g.cos),
    zero: all.flatMap((channel, j) => (channel.kind === "zero" ? [j] : [])),
  };
}
