"""``posenc distance``: how alike positions are, over the offset between them."""

from dataclasses import dataclass

from posenc.cli.options import Base, Convention, Dim, Format, Length


@dataclass(frozen=True)
class Distance:
    """Print dot products over the offset, and the closest pair of positions."""

    length: Length = 60
    dim: Dim = 128
    base: Base = 10_000.0
    convention: Convention = "paper"
    format: Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.viewing import distance

        distance(self)
