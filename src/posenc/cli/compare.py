"""``posenc compare``: conventions beside each other, by what can be computed of them."""

from dataclasses import dataclass

from posenc.cli.options import Base, Dim, Format, Length


@dataclass(frozen=True)
class Compare:
    """Compare the sinusoidal conventions: bounds, distances, shifts, norms, narrow numbers."""

    length: Length = 512
    dim: Dim = 64
    base: Base = 10_000.0
    format: Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.viewing import compare

        compare(self)
