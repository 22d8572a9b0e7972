"""Each fault: what to do about it, and how much it counts."""

from posenc.audit.report import Fault, Severity

BUILD = "raise an error beyond the table, or build the table on demand"
ONE_TABLE = "use one table for queries and keys, in the order in which they came"

REMEDIES: dict[str, str] = {
    "batch-axis-encoded": "index by the axis of the sequence, or say --layout",
    "head-axis-encoded": "index by the axis of the sequence, or say --layout",
    "encodes-nothing": "check that positions reach the sum or the rotation",
    "not-a-number": "look for log 0, a division by 0, and an overflow of 16 bits",
    "positions-shared": "give every token its own position: an int64 arange over the sequence",
    "off-by-one-after-cache": "the first new token stands at the length of the cache",
    "decoding-differs-from-prefill": "add the length of the cache to the positions",
    "positions-misread": "take the angles of each token from its own position, from 0 on",
    "first-row-for-all": "index by each row's own positions, not by those of the first row",
    "padding-shifts-positions": "positions = mask.cumsum(-1) - 1, and nothing else of padding",
    "depends-on-length": "leave the length of the row out of the formula",
    "clamped": BUILD,
    "wrapped": BUILD,
    "stops": BUILD,
    "truncated-silently": f"{BUILD}: zip and slicing drop the rest",
    "depends-on-how-it-is-given": "take one formula for every shape, dtype and mode",
    "input-written": "use x = x + table, not x += table",
    "state-between-calls": "keep no cache, or key it by all that shapes it: length, dtype, device",
    "first-dtype-cached": "cache float32, and cast what leaves the cache",
    "history-changes-result": "let frequencies follow from the configured length",
    "cast-breaks-it": "compute frequencies in float32 inside forward, and keep them out of .to()",
    "autocast-breaks-it": "multiply by broadcasting, or within torch.autocast(..., enabled=False)",
    "perhaps-wrong-exponent": "look whether the base is meant: the exponent is 2i/d",
    "factor-left-out": "multiply the scale of scores with the factor's square",
    "wrong-exponent": "the exponent is 2i/d with i = 0 … d/2 − 1",
    "angles-rounded": "divide positions with /, not //, or multiply them with float frequencies",
    "sine-twice": "sines in one half of the channels, cosines in the other",
    "sign-missing": "(a, b) → (a cos − b sin, b cos + a sin): one of the sines is negative",
    "pairing-mixed": "cat((f, f)) pairs (i, i + d/2), and repeat_interleave(2) pairs neighbors",
    "pairing-of-the-other-convention": "use the pairing of the checkpoint, or permute its weights",
    "pair-never-turns": "begin at 2i/d with i = 0, and end before d/2; count the frequencies",
    "rest-changed": "hand on the channels that are not rotated as they come",
    "sides-mixed": ONE_TABLE,
    "only-queries-rotated": "rotate keys by their own positions too",
    "only-keys-rotated": "rotate queries by their own positions too",
    "keys-turned-backwards": "rotate keys in the same sense as queries",
    "keys-turned-otherwise": ONE_TABLE,
    "turned-backwards": "keep it for weights trained so; for others change the sign of the sines",
    "one-axis-only": "turn one part of the channels by the row, and another by the column",
    "rows-not-whole": "row = number // side; --ignore rows-not-whole if fractions are meant",
    "axes-swapped": "give keys the coordinates of queries, in the same order",
    "not-relative": "check which channels share an angle",
    "table-scaled": "leave cosines and sines as they are, or say the attention factor",
    "positions-in-16-bits": "keep positions in int64 and angles in float32",
    "frequencies-in-16-bits": "compute frequencies in float32",
    "table-in-16-bits": "keep the table in float32 and round once, at the end",
    "far-positions-otherwise": "look at positions there: an offset, a clamp, a table in two parts",
    "precision-lost": "compute angles in float64 or with posenc.Rotary, and round once",
    "unknown-frequencies": "compare with the paper's; --ignore unknown-frequencies if meant",
    "unlike-its-configuration": "read base, scaling, width and pairing from the configuration",
    "wrong-slopes": "posenc.numerics.slopes.alibi(heads) has the authors' slopes",
    "slopes-of-other-head-counts": "posenc.numerics.slopes.alibi(heads) has the authors' slopes",
    "slopes-in-another-order": "head h has slope 2^(−8h/H), from the first head on",
    "far-keys-otherwise": "do not clip distances; --ignore far-keys-otherwise if that is meant",
    "wrong-sign": "subtract slope × distance: near keys win",
    "depends-on-absolute-positions": "compute the bias from q_position − k_position",
    "bias-without-cache-offset": "add k_len − q_len to the positions of queries",
    "mask-misplaced": "hide the keys after the query; --ignore mask-misplaced if others are meant",
    "bias-in-16-bits": "compute slope × distance in float32 from the distance",
    "scores-changed": "add to scores as they come; --ignore scores-changed if they are scaled",
    "buckets-turned": "T5 takes key − query: swap the operands, or the last two axes",
    "buckets-off": "posenc.numerics.buckets.t5_buckets has T5's borders in whole numbers",
    "parameter-without-gradient": "use the parameter in forward, or make it a buffer",
    "gradient-otherwise": "multiply gradients with the transpose of the rotation",
    "gradient-cut": "do not detach, and do not build tensors anew from content",
}

# faults that cost digits alone, unless a question says more
LOSSY = frozenset({
    "positions-in-16-bits", "precision-lost", "frequencies-in-16-bits", "table-in-16-bits",
    "cast-breaks-it", "autocast-breaks-it", "bias-in-16-bits",
})  # fmt: skip
# what is worth knowing and no fault
NOTES = frozenset({
    "takes-sequence-first", "dtype-changed", "unusual-base", "unknown-function", "key-only",
    "begins-elsewhere", "content-scaled", "values-shared", "buckets-by-side", "turned-backwards",
    "factor-left-out", "perhaps-wrong-exponent",
})  # fmt: skip
UNKNOWN = "its formula is not known here: it was asked for order, decoding and state alone"

# What makes other questions moot.

NO_ORDER = ("batch-axis-encoded", "head-axis-encoded", "encodes-nothing", "sides-mixed")
NO_LENGTH = (*NO_ORDER, "depends-on-length")
NO_STATE = ("state-between-calls", "history-changes-result")
NO_NUMBER = (*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits")
NO_PLACE = (
    *NO_NUMBER, "positions-shared", "clamped", "wrapped", "stops", "off-by-one-after-cache",
    "decoding-differs-from-prefill", "wrong-exponent",
)  # fmt: skip


def fault(
    name: str,
    said: str,
    number: float = 1.0,
    *,
    expected: float = 0.0,
    severity: Severity | None = None,
) -> Fault:
    """A fault, with how much it counts and what to do about it."""
    usual: Severity = "note" if name in NOTES else "lossy" if name in LOSSY else "wrong"
    return Fault(name, severity or usual, said, float(number), expected, REMEDIES.get(name, ""))
