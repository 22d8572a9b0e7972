"""What a rope type of Hugging Face is: its names, its keys, and the schedule that it means.

Each schedule that has one states it beside its formula; ``registry`` gathers them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.frequencies.schedule import Schedule

LISTS = ("mrope_section",)
SWITCHES = ("rope_type", "type", "mrope_interleaved", "interleaved")
COMMON = frozenset({"rope_theta", "partial_rotary_factor", *LISTS, *SWITCHES})
"""Keys that every rope dictionary may have; ``LISTS`` have several numbers."""


@dataclass(frozen=True)
class RopeType:
    """One rope type of Hugging Face's configurations, beside the schedule that it means.

    Attributes:
        name: Its name today.
        read: From a dictionary, and the length of the sequences, to the schedule.
        write: From a schedule and the width of a head to the dictionary, less its name; None for
            schedules of other types, and where no dictionary tells all of it.
        keys: The keys that it reads or knows to leave aside, besides the common ones.
        lists: Of these, keys with several numbers.
        switches: Of these, keys with names and switches.
        aliases: Names that it had.
        factor_key: The key that says by how much the length is extended.
        implied_factor: Whether that may be left out, for target over trained length.
        keeps_trained_length: Whether the dictionary has a trained length of its own, other than
            ``max_position_embeddings``.
        claims: Whether a dictionary under another name is of this type all the same, by its name,
            its values and the family of the model.
        in_transformers: Whether transformers has a rope type of this name.
    """

    name: str
    read: Callable[["Rope", int | None], Schedule]
    write: Callable[[Schedule, int], dict[str, Any] | None] = lambda *_: None
    keys: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    factor_key: str = "factor"
    implied_factor: bool = False
    keeps_trained_length: bool = False
    claims: Callable[[str, Mapping[str, Any], str], bool] = lambda *_: False
    in_transformers: bool = True


@dataclass(frozen=True)
class Rope:
    """One rope dictionary with what the rest of the configuration adds to it.

    Attributes:
        rope_type: What it is a dictionary of.
        values: The dictionary without nulls.
        head_dim: Width of the head, or of the part of it that rotation is about.
        width: How much of that is rotated.
        base: Base of the powers.
        trained_length: Positions before any extension; None where nothing says.
        longest: ``max_position_embeddings``; None where nothing says.
    """

    rope_type: RopeType
    values: Mapping[str, Any]
    head_dim: int
    width: int
    base: float
    trained_length: int | None
    longest: int | None

    @property
    def kind(self) -> str:
        """The name of the rope type."""
        return self.rope_type.name

    @property
    def factor(self) -> float | None:
        """By how much the length is extended: given, or target over trained length."""
        given = self.values.get(self.rope_type.factor_key)
        if given is not None or not self.rope_type.implied_factor:
            return given
        return self.length("longest") / self.length("trained_length")

    def needed(self, key: str) -> Any:
        """A value that this rope type cannot do without."""
        if key not in self.values:
            raise ValueError(f"Rope type {self.kind!r} needs {key!r}.")
        return self.values[key]

    def length(self, which: str) -> int:
        """``trained_length`` or ``longest``, which this rope type cannot do without."""
        value = getattr(self, which)
        if value is None:
            raise ValueError(f"Rope type {self.kind!r} needs max_position_embeddings.")
        return value
