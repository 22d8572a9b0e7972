"""``posenc walk``: a sentence on its way through an encoder."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from posenc.cli.options import Base, Convention, Dim, Seed

Count = Annotated[int, arg(metavar="N")]


@dataclass(frozen=True)
class Walk:
    """Show every stage of a transformer encoder with its numbers and shapes.

    The weights and embeddings are seeded random numbers: they show the mechanism, not a meaning.
    """

    text: Annotated[Positional[str], arg(metavar="[TEXT]")] = "your cat is a lovely cat"
    """The sentence."""
    dim: Dim = 16
    heads: Count = 2
    """Number of attention heads; they share the width."""
    depth: Count = 1
    """Number of blocks; the first is shown."""
    inner: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 4 × dim)")] = None
    """Width inside the feed-forward layer."""
    norm: Literal["pre", "post"] = "pre"
    """Whether the norms come before attention and feed-forward, or after their sums."""
    base: Base = 10_000.0
    convention: Convention = "paper"
    seed: Seed = 0
    format: Annotated[Literal["text", "json"], arg(help="How to print.")] = "text"

    def run(self) -> None:
        """Walks."""
        from posenc.cli.walking import walk

        walk(self)
