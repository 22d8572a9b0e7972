"""The sinusoidal encoding that ``--dim``, ``--base`` and ``--convention`` choose, without tensors.

One number of it is whole numbers and one division, so that ``explain`` answers before torch would
be loaded. Any other encoding is a module of torch.
"""

from dataclasses import dataclass
from typing import Any

from posenc.encodings.tokens.conventions import CONVENTIONS, Channel, Convention
from posenc.frequencies import Powers
from posenc.frequencies.schedule import FINE_TURN_BITS
from posenc.numerics.in_integers import nearest_value


@dataclass(frozen=True)
class Sinusoid:
    """What makes the numbers of a sinusoidal encoding.

    Example:
        >>> Sinusoid(CONVENTIONS["paper"], 4, 100.0).value(1, 2)  # sin(1 / 10)
        0.09983341664682815
    """

    convention: Convention
    dim: int
    base: float
    offset: int = 0

    def __post_init__(self):
        self.convention.sincos(self.dim, self.base)

    @property
    def first(self) -> int:
        """Where it begins to count."""
        return self.offset + self.convention.first

    def channel(self, dimension: int) -> Channel:
        """What one dimension holds."""
        return self.convention.channel(dimension, self.dim, self.base)

    def value(self, position: int, dimension: int) -> float:
        """One number of the table, correctly rounded to float64."""
        channel = self.channel(dimension)
        if channel.function == "zero":
            return 0.0
        exponent = channel.exponent
        (turns,) = Powers(self.base, (exponent.numerator,), exponent.denominator).fine_turns()
        phase = (position + self.first) * turns
        return nearest_value(phase, channel.function == "sin", FINE_TURN_BITS)

    def described(self) -> dict[str, object]:
        """What JSON says of it."""
        sign = "+" if self.offset > 0 else "−"
        counted = f"; p = position {sign} {abs(self.offset)}" if self.offset else ""
        return {
            "encoding": "Sinusoidal",
            "convention": self.convention.name,
            "formula": f"{self.convention.formula}{counted}",
            "dim": self.dim,
            "base": self.base,
        }


def sinusoid(asked: Any, *, dim: int) -> Sinusoid:
    """The one of ``--dim``, ``--base`` and ``--convention``."""
    name = asked.convention or "paper"
    if name not in CONVENTIONS:
        raise ValueError(f"convention is {name!r}; it must be one of {', '.join(CONVENTIONS)}.")
    base = 10_000.0 if asked.base is None else asked.base
    return Sinusoid(CONVENTIONS[name], dim if asked.dim is None else asked.dim, base)
