"""How heads lie in content, and which of their channels are rotated."""

from dataclasses import dataclass, field, replace

from posenc.numerics.pairing import Pairing, Rotated


@dataclass(frozen=True)
class RotaryLayout:
    """Which channels are a pair, where they are, and which way they are rotated.

    Attributes:
        interleaved: Whether channels 2i and 2i + 1 are a pair, or i and i + pairs.
        suffix: Whether the last channels are rotated, or the first.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``, or
            ``[*batch, seq, heads, head_dim]``.
        conjugate: Whether to rotate backwards.
        bits: All of it as the number that operators take.
    """

    interleaved: bool = False
    suffix: bool = False
    heads_first: bool = True
    conjugate: bool = False
    bits: int = field(init=False, repr=False)

    def __post_init__(self):
        flags = self.interleaved, self.suffix, self.heads_first, self.conjugate
        object.__setattr__(self, "bits", sum(flag << i for i, flag in enumerate(flags)))

    @classmethod
    def of(cls, bits: int) -> "RotaryLayout":
        """The layout that has these bits."""
        return cls(*[bool(bits >> i & 1) for i in range(4)])

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
        return replace(self, conjugate=not self.conjugate)
