"""How heads lie in content, and which of their channels are rotated."""

from typing import NamedTuple

from posenc.numerics.pairing import Pairing, Rotated


class RotaryLayout(NamedTuple):
    """Which channels are a pair, where they are, and which way they are rotated.

    Attributes:
        interleaved: Whether channels 2i and 2i + 1 are a pair, or i and i + pairs.
        suffix: Whether the last channels are rotated, or the first.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``, or
            ``[*batch, seq, heads, head_dim]``.
        conjugate: Whether to rotate backwards.
    """

    interleaved: bool = False
    suffix: bool = False
    heads_first: bool = True
    conjugate: bool = False

    @property
    def pairing(self) -> Pairing:
        """The name of the pairing."""
        return "interleaved" if self.interleaved else "half"

    @property
    def rotated(self) -> Rotated:
        """The name of the part that is rotated."""
        return "suffix" if self.suffix else "prefix"

    def backwards(self) -> "RotaryLayout":
        """The layout of the inverse rotation, which is the gradient too."""
        return self._replace(conjugate=not self.conjugate)
