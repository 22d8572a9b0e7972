"""Names that people try, and where what they mean stands."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

TRIED = {
    "AbsolutePositionalEmbedding": "Learned",
    "AbsolutePositionalEncoding": "Sinusoidal",
    "LearnedPositionalEmbedding": "Learned",
    "LearnedPositionalEncoding": "Learned",
    "MRoPE": "MultimodalRotary",
    "NoPE": "Positional",
    "PartialRotary": "Rotary",
    "PositionEmbedding": "Learned",
    "PositionalEmbedding": "Learned",
    "PositionalEncoding": "Sinusoidal",
    "PositionalEncoding1D": "Sinusoidal",
    "PositionalEncoding2D": "Sinusoidal",
    "RelativePositionBias": "T5Bias",
    "RelativePositionalBias": "T5Bias",
    "RelativePositionalEncoding": "Shaw",
    "RelativePositionalEmbedding": "Shaw",
    "RoPE": "Rotary",
    "RoPE2D": "AxialRotary",
    "RotaryEmbedding": "Rotary",
    "RotaryPositionEmbedding": "Rotary",
    "RotaryPositionalEmbedding": "Rotary",
    "RotaryPositionalEmbeddings": "Rotary",
    "RotaryPositionalEncoding": "Rotary",
    "SinusoidalEmbedding": "Sinusoidal",
    "SinusoidalPositionEmbedding": "Sinusoidal",
    "SinusoidalPositionalEmbedding": "Sinusoidal",
    "SinusoidalPositionalEncoding": "Sinusoidal",
    "T5": "T5Bias",
    "T5RelativePositionBias": "T5Bias",
    "apply_rotary_pos_emb": "Rotary",
    "flex_attention": "attention",
    "scaled_dot_product_attention": "attention",
}
"""What other libraries and papers call something that is public here."""

FOLDERS = (
    "frequencies",
    "positions",
    "transformer",
    "recipes",
    "audit",
    "testing",
    "interop.huggingface",
)
"""Where public names stand that are none of the face."""


def advice(name: str, public: Sequence[str]) -> str | None:
    """The import that was meant by a name that is not there, as far as can be told.

    Args:
        name: What was asked for.
        public: The names of the face.

    Example:
        >>> advice("RoPE", ["ALiBi", "Rotary"])
        'from posenc import Rotary'
        >>> advice("YaRN", ["ALiBi", "Rotary"])
        'from posenc.frequencies import YaRN'
        >>> advice("check", ["ALiBi", "Rotary"])
        'from posenc.audit import check'
    """
    if name in TRIED:
        return f"from posenc import {TRIED[name]}"
    homes = dict.fromkeys(public, "posenc")
    for folder in FOLDERS:
        module = f"posenc.{folder}"
        for known in import_module(module).__all__:
            homes.setdefault(known, module)
    found = homes.get(name) and name
    by_letters = {known.lower(): known for known in [*TRIED, *homes]}
    plain = name.lower().replace("_", "")
    close = get_close_matches(plain, by_letters, n=1, cutoff=0.7)
    found = found or by_letters.get(plain) or (by_letters[close[0]] if close else None)
    if found is None:
        return None
    return f"from {homes.get(found, 'posenc')} import {TRIED.get(found, found)}"


def unknown(name: str, public: Sequence[str]) -> Exception:
    """What to raise for a name that is not there, with what was meant.

    ``from posenc import name`` drops the words of an AttributeError, so there it is an ImportError.
    """
    said = f"module 'posenc' has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(said)
    asked = sys._getframe(2).f_code.co_name  # below are this function and the module's own
    if asked == "_handle_fromlist" and find_spec(f"posenc.{name}") is not None:
        return AttributeError(said)  # a submodule, which import goes on to find
    meant = advice(name, public)
    said = f"{said}. Did you mean: {meant}?" if meant else said
    return ImportError(said) if asked == "_handle_fromlist" else AttributeError(said)
