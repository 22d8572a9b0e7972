"""What to do about each fault, and how much it counts."""

REMEDIES: dict[str, str] = {
    "batch-axis-encoded": "index the table by the sequence axis: x.shape[1] of [batch, seq, dim], "
    "x.shape[0] of [seq, batch, dim]; say --layout if the order is meant",
    "head-axis-encoded": "index by the axis that holds the sequence, turn all heads alike, or say "
    "--layout",
    "encodes-nothing": "check that positions reach the sum or the rotation",
    "not-a-number": "look for a logarithm or a root of 0, a division by 0, and an overflow of "
    "16 bits",
    "positions-shared": "give every token its own position: an int64 arange over the sequence",
    "off-by-one-after-cache": "the first new token stands at the length of the cache",
    "decoding-differs-from-prefill": "add the length of the cache to the positions",
    "positions-misread": "take the angles of each token from its own position, whatever comes "
    "before it, and count from 0 where no positions are given",
    "first-row-for-all": "index by each row's own positions, not by those of the first row alone",
    "padding-shifts-positions": "positions = mask.cumsum(-1) - 1, and nothing of the number "
    "or the content of padding tokens",
    "depends-on-length": "leave the length of the row out of the formula; resolve dynamic scaling "
    "at one length",
    "clamped": "raise an error beyond the table, or build the table on demand",
    "wrapped": "raise an error beyond the table, or build the table on demand",
    "stops": "raise an error beyond the table, or build the table on demand",
    "truncated-silently": "raise an error beyond the table: zip and slicing drop the rest",
    "depends-on-how-it-is-given": "let positions alone decide the angle: read strides, heads and "
    "rows from the tensor that comes, and take one formula for every dtype and mode",
    "input-written": "use x = x + table, not x += table",
    "state-between-calls": "keep no cache, or key it by all that shapes it: length, dtype, device",
    "first-dtype-cached": "cache float32, and cast what leaves the cache",
    "history-changes-result": "let frequencies follow from the configured length, not from the "
    "longest row so far",
    "cast-breaks-it": "compute frequencies from Python numbers in float32 inside forward, or build "
    "the table once in float32 and keep it out of .to()",
    "autocast-breaks-it": "multiply positions and frequencies by broadcasting, or with autocast "
    "off: torch.autocast(x.device.type, enabled=False)",
    "perhaps-wrong-exponent": "look whether the base is meant: the exponent is 2i/d, d the width "
    "that is rotated",
    "factor-left-out": "multiply the scale of scores with the factor's square",
    "wrong-exponent": "the exponent is 2i/d with i = 0 … d/2 − 1",
    "angles-rounded": "divide positions with /, not //, or multiply them with float frequencies",
    "sine-twice": "sines in one half of the channels, cosines in the other",
    "sign-missing": "(a, b) → (a cos − b sin, b cos + a sin): one of the sines is negative",
    "pairing-mixed": "cosines and the rotated half must pair channels alike: cat((f, f)) with "
    "(i, i + d/2), repeat_interleave(2) with (2i, 2i + 1)",
    "pairing-of-the-other-convention": "use the pairing of the checkpoint, or permute its weights",
    "pair-never-turns": "begin at 2i/d with i = 0, and end before d/2; count the frequencies",
    "rest-changed": "hand on the channels that are not rotated as they come",
    "sides-mixed": "rotate_half(k) for keys and rotate_half(q) for queries, and return them in "
    "the order in which they came",
    "only-queries-rotated": "rotate keys by their own positions too",
    "only-keys-rotated": "rotate queries by their own positions too",
    "keys-turned-backwards": "rotate keys in the same sense as queries: R(m)ᵀR(n) is relative, "
    "R(m)R(n) is not",
    "keys-turned-otherwise": "use one table for queries and keys",
    "turned-backwards": "keep it for weights trained so; for others change the sign of the sines",
    "one-axis-only": "turn one part of the channels by the row, and another by the column",
    "rows-not-whole": "row = number // side and column = number % side, both whole; --ignore "
    "rows-not-whole if fractions of a row are meant",
    "axes-swapped": "give keys the coordinates of queries, in the same order",
    "not-relative": "check which channels share an angle",
    "table-scaled": "leave cosines and sines as they are, or say the attention factor",
    "positions-in-16-bits": "keep positions in int64 and angles in float32",
    "frequencies-in-16-bits": "compute frequencies in float32",
    "table-in-16-bits": "keep the table in float32 and round once, at the end",
    "far-positions-otherwise": "look at what becomes of positions there: an offset, a clamp, a "
    "table of two parts",
    "precision-lost": "compute angles in float64 or with posenc.Rotary, and round once",
    "unknown-frequencies": "compare the exponent and the base with the paper's; --ignore "
    "unknown-frequencies if they are meant",
    "unlike-its-configuration": "read base, scaling, width and pairing from the configuration",
    "wrong-slopes": "m_h = 2^(−8h/H); for other numbers of heads the authors interleave two series",
    "slopes-of-other-head-counts": "posenc.numerics.slopes.alibi(heads) has the authors' slopes",
    "slopes-in-another-order": "head h has slope 2^(−8h/H), from the first head on",
    "far-keys-otherwise": "compute slope × distance for every distance: do not clip it, nor cut it "
    "into pieces; --ignore far-keys-otherwise if that is meant",
    "wrong-sign": "subtract slope × distance: near keys win",
    "depends-on-absolute-positions": "compute the bias from q_position − k_position",
    "bias-without-cache-offset": "the last of q_len queries stands at the last key: add k_len − "
    "q_len to query positions",
    "mask-misplaced": "hide the keys after the query, k > q + (k_len − q_len), and no others, or "
    "leave that to attention; --ignore mask-misplaced if these are meant, as a look ahead is, or "
    "a model that reads backwards",
    "bias-in-16-bits": "compute slope × distance in float32 from the distance",
    "scores-changed": "add the bias to scores as they come; --ignore scores-changed if they are "
    "scaled or capped on purpose",
    "buckets-turned": "T5 takes key − query: swap the operands, or the last two axes",
    "buckets-off": "posenc.numerics.buckets.t5_buckets has T5's borders in whole numbers",
    "parameter-without-gradient": "use the parameter in forward, or make it a buffer",
    "gradient-otherwise": "multiply gradients with the transpose: of a rotation by an angle, "
    "that by minus the angle; --ignore gradient-otherwise if they are scaled on purpose",
    "gradient-cut": "do not detach, and do not build tensors anew from content",
}

LOSSY = frozenset({
    "positions-in-16-bits", "precision-lost", "frequencies-in-16-bits", "table-in-16-bits",
    "cast-breaks-it", "autocast-breaks-it", "bias-in-16-bits",
})  # fmt: skip
"""Faults that cost digits alone, unless a question says more."""

NOTES = frozenset({
    "takes-sequence-first", "dtype-changed", "unusual-base", "unknown-function", "key-only",
    "begins-elsewhere", "content-scaled", "values-shared", "buckets-by-side", "turned-backwards",
    "factor-left-out", "perhaps-wrong-exponent",
})  # fmt: skip
"""What is worth knowing and no fault."""
