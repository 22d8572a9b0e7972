"""``posenc walk``: a sentence on its way through an encoder."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import Flag, Name, SomeWhole, Whole, by_place, named


@dataclass(frozen=True)
class Walk:
    """Weights and embeddings are seeded random numbers: they show the mechanism, not a meaning. The
    encoding acts in its place: on tokens, on queries and keys, or on scores.
    """

    text: Annotated[str, by_place, named("TEXT"), Doc("The sentence.")] = "your cat is a lovely cat"
    encoding: options.Expression = None
    dim: Annotated[Whole, Doc("Width of a token.")] = 16
    heads: Annotated[Whole, Doc("Number of attention heads; they share the width.")] = 2
    depth: Annotated[Whole, Doc("Number of blocks; the first is shown.")] = 1
    inner: Annotated[SomeWhole, Doc("Width of feed-forward (default: 4 x dim).")] = None
    norm: Annotated[Literal["pre", "post"], Doc("Norms before each part, or after it.")] = "pre"
    causal: Annotated[Flag, Doc("Hide from each token those after it.")] = False
    stage: Annotated[Optional[str], named("S"), Doc("Show one alone, as softmax or 14.")] = None
    base: Annotated[Optional[float], named("X"), Doc("Of wavelengths (default: 10000).")] = None
    convention: Annotated[Name, Doc("The sinusoidal convention (default: paper).")] = None
    seed: options.Seed = 0
    format: options.TextOrJson = "text"

    def run(self) -> None:
        """Walks."""
        from posenc.cli.shown.walk import walk

        walk(self)
