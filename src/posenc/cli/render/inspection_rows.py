"""The rows of ``posenc inspect``: what is said of one layer, and by which numbers."""

from collections.abc import Callable
from dataclasses import dataclass

from posenc.inspection.model import LayerNumbers
from posenc.inspection.rotary import RotaryNumbers


@dataclass(frozen=True)
class Row:
    """One thing that is said of a layer.

    Attributes:
        label: What it is about.
        fields: Which numbers it tells of.
        text: What is said; None where there is nothing to say.
    """

    label: str
    fields: tuple[str, ...]
    text: Callable[[RotaryNumbers], str | None]


def whole(number: float) -> str:
    """A length or a wavelength: a whole number in groups of three digits, or a few digits.

    Example:
        >>> whole(131072), whole(6.283185), whole(20630000.4)
        ('131,072', '6.283', '20,630,000')
    """
    return f"{number:,.0f}" if number >= 1000 or number == int(number) else f"{number:.4g}"


def given(number: float) -> str:
    """A number that a configuration gives, with all its digits.

    Example:
        >>> given(500000.0), given(12345.678), given(4)
        ('500,000', '12,345.678', '4')
    """
    return f"{number:,}".removesuffix(".0")


def _frequencies(layer: RotaryNumbers) -> str:
    said = f"base {given(layer.base)}"
    if layer.scaling == "default":
        return said
    factor = "" if layer.factor is None else f" × {given(layer.factor)}"
    lists = {None: "", True: ", long factors", False: ", short factors"}[layer.long_factors]
    return f"{said}, {layer.scaling}{factor}{lists}"


def _length(layer: RotaryNumbers) -> str:
    trained, target = layer.trained_length, layer.target_length
    if target is None:
        return "the file gives none; choose a target with --length"
    if trained is None:
        return f"looked at up to {whole(target)}; trained to an unknown one"
    said = f"trained to {whole(trained)}"
    return said if target == trained else f"{said}, looked at up to {whole(target)}"


def _rotated(layer: RotaryNumbers) -> str:
    which = {"prefix": "first", "suffix": "last"}[layer.rotated]
    if layer.rotated_dim == layer.head_dim:
        return f"all {layer.head_dim} channels of a head"
    return f"the {which} {layer.rotated_dim} of {layer.head_dim} channels of a head"


def _pairing(layer: RotaryNumbers) -> str:
    half = layer.rotated_dim // 2
    pair = {"half": f"i and i + {half}", "interleaved": "2i and 2i + 1"}[layer.pairing]
    doubt = "" if layer.pairing_is_known else "; assumed, since this model type is not known"
    return f"{layer.pairing}: channels {pair}{doubt}"


def _axes(layer: RotaryNumbers) -> str | None:
    if layer.sections is None:
        return None
    pairs = ", ".join(map(str, layer.sections))
    return f"{pairs} pairs for time, height and width; {layer.arrangement}"


def _wavelengths(layer: RotaryNumbers) -> str:
    rotating = layer.pairs - layer.still
    said = f"{whole(layer.shortest)} to {whole(layer.longest)} positions in {rotating} pairs"
    return f"{said}; {layer.still} pairs do not turn" if layer.still else said


def _turns(layer: RotaryNumbers) -> str | None:
    trained, target = layer.trained_length, layer.target_length
    if layer.unfinished is None or trained is None:
        return None
    before, now = _scaled(layer)
    if not layer.unfinished:
        return f"every pair that turns completes one in {whole(trained)}{before}"
    pairs = "1 pair completes" if layer.unfinished == 1 else f"{layer.unfinished} pairs complete"
    said = f"{pairs} none in {whole(trained)}{before}"
    if target is None or target <= trained:
        return said
    return f"{said}; {layer.finished_later or 'none'} of them do so in {whole(target)}{now}"


def _scaled(layer: RotaryNumbers) -> tuple[str, str]:
    """What is said of the frequencies over the trained length, and of those over the target."""
    if layer.scaling == "longrope":
        return " by short factors", " by long ones"
    if layer.scaling == "default" or layer.factor in (None, 1):
        return "", ""
    tells_before = layer.scaling in ("yarn", "llama3", "dynamic")
    return " unscaled" if tells_before else " scaled", " scaled"


def _angles(layer: RotaryNumbers) -> str | None:
    if layer.precision is None:
        return None
    return f"cos and sin off by up to {layer.precision.float32_error:.2g}"


def _cast_frequencies(layer: RotaryNumbers) -> str | None:
    if (lost := layer.precision) is None:
        return None
    return f"in {lost.dtype}: cos and sin off by up to {lost.frequency_error:.2g}"


def _cast_positions(layer: RotaryNumbers) -> str | None:
    lost, length = layer.precision, layer.target_length
    if lost is None or length is None:
        return None
    first, second = whole(lost.first_shared), whole(lost.first_shared + 1)
    if lost.first_shared + 1 >= length:
        return f"in {lost.dtype}: all told apart; the first that are not are {first} and {second}"
    said = f"in {lost.dtype}: {first} and {second} are one"
    return f"{said}; so are the last {whole(lost.sharing)}" if lost.sharing > 1 else said


def _scale(scale: float | None) -> str | None:
    return None if scale is None else f"{scale:.6g}"


ROWS = (
    Row("frequencies", ("base", "scaling", "factor", "long_factors"), _frequencies),
    Row("length", ("trained_length", "target_length"), _length),
    Row("rotated", ("rotated_dim", "head_dim", "rotated"), _rotated),
    Row("pairing", ("pairing", "pairing_is_known", "rotated_dim"), _pairing),
    Row("axes", ("sections", "arrangement"), _axes),
    Row("attention factor", ("attention_factor",), lambda layer: f"{layer.attention_factor:.6g}"),
    Row("softmax scale", ("softmax_scale",), lambda layer: _scale(layer.softmax_scale)),
    Row("wavelengths", ("shortest", "longest", "pairs", "still"), _wavelengths),
    Row("turns", ("unfinished", "finished_later", "trained_length", "target_length"), _turns),
    Row("float32 angles", ("precision",), _angles),
    Row("cast frequencies", ("precision",), _cast_frequencies),
    Row("cast positions", ("precision", "target_length"), _cast_positions),
)

PLACES = ("tokens", "queries_keys", "scores")

WORDS = {
    "Learned": "a trained vector for each position, added to the tokens; none beyond the last",
    "LearnedGrid": "a trained vector for each patch, added to it; resampled to other grids",
    "Sinusoidal": "sines and cosines of many wavelengths, added to the tokens; no longest length",
    "ALiBi": "a slope a head times the distance, taken from the scores",
    "T5Bias": "a trained number for each bucket of distances and each head, added to the scores",
    "DeBERTa": "queries and keys meet trained vectors of their bucket of distances",
    "SwinBias": "a trained number for each displacement within a window, added to the scores",
    "SwinV2Bias": "a small network makes the bias of each displacement within a window",
    "AxialRotary": "each pair of channels turns by one coordinate of a patch",
    "LTXRotary": "each pair of channels turns by one coordinate of a patch, as a share of its axis",
    "QueryTemperature": "queries grow slowly with their position; keys stay",
    "LogTemperature": "scores grow slowly with the position of the query",
    "CounterRotary": "values turn with keys, and the output turns back",
}
"""What the encodings without rows of numbers do, in words."""


def words_of(layer: LayerNumbers) -> list[tuple[str, str]]:
    """What the encodings of a layer do, but for a rotary one, which has rows of its own."""
    found = []
    for place, label in zip(PLACES, ("tokens", "queries, keys", "scores"), strict=True):
        for expression in getattr(layer, place):
            name = expression.partition("(")[0]
            if name in WORDS:
                found.append((label, WORDS[name]))
    return found


def said_of(layer: LayerNumbers, *, rows_are_shown: bool = True) -> list[tuple[str, str]]:
    """Window, chunks, and the scale of scores where no rotary row tells it."""
    found = []
    scale = _scale(layer.softmax_scale)
    if scale is not None and not (layer.rotary and rows_are_shown):
        found.append(("softmax scale", scale))
    if layer.window is not None:
        found.append(("window", f"the last {whole(layer.window)} keys"))
    if layer.chunk is not None:
        found.append(("chunks", f"of {whole(layer.chunk)} positions, each by itself"))
    return found
