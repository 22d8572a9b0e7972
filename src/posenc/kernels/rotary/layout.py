"""How heads lie in content, and which of their channels are rotated."""

from dataclasses import dataclass, field, replace

from posenc.numerics.pairing import Pairing, Rotated


@dataclass(frozen=True)
class RotaryLayout:
    """Which channels are a pair, where they are, and which way they are rotated."""

    interleaved: bool = False  # channels 2i and 2i + 1 are a pair; else i and i + pairs
    suffix: bool = False  # the last channels are rotated; else the first
    heads_first: bool = True  # [*batch, heads, seq, head_dim]; else [*batch, seq, heads, head_dim]
    conjugate: bool = False  # rotated backwards
    # All of it as the number that operators take.
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
