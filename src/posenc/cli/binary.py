"""``posenc binary``: positions as binary numbers beside the waves of an encoding."""

from dataclasses import dataclass

from posenc.cli.options import Base, Dim, Format, Length


@dataclass(frozen=True)
class Binary:
    """Print binary digits beside waves: both have fast columns and slow ones."""

    length: Length = 16
    dim: Dim = 8
    base: Base = 16.0
    format: Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.viewing import binary

        binary(self)
