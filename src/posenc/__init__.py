"""Positional encodings for transformers: one small contract, exact at any position."""

from posenc.encodings.places import (
    QueryKeyEncoding,
    RelativeBias,
    ScoreBias,
    ScoreEncoding,
    TokenEncoding,
)
from posenc.encodings.positional import Positional
from posenc.encodings.scores import ALiBi
from posenc.encodings.tokens import Learned, Sinusoidal
from posenc.numerics import positions

__version__ = "0.1.0"

__all__ = [
    "ALiBi",
    "Learned",
    "Positional",
    "QueryKeyEncoding",
    "RelativeBias",
    "ScoreBias",
    "ScoreEncoding",
    "Sinusoidal",
    "TokenEncoding",
    "positions",
]
