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

    ``read`` takes a dictionary and the length of the sequences. ``write`` takes a schedule and the
    width of a head; it gives the dictionary less its name, or None where none tells all of it.
    ``claims`` tells of a dictionary under another name that it is of this type all the same.
    """

    name: str
    read: Callable[["Rope", int | None], Schedule]
    write: Callable[[Schedule, int], dict[str, Any] | None] = lambda *_: None
    keys: tuple[str, ...] = ()  # that it reads or knows to leave aside, besides the common ones
    lists: tuple[str, ...] = ()  # of these, keys with several numbers
    switches: tuple[str, ...] = ()  # of these, keys with names and switches
    aliases: tuple[str, ...] = ()  # names that it had
    factor_key: str = "factor"  # which says by how much the length is extended
    implied_factor: bool = False  # whether that may be left out, for target over trained length
    keeps_trained_length: bool = False  # beside ``max_position_embeddings``
    claims: Callable[[str, Mapping[str, Any], str], bool] = lambda *_: False  # name, values, family
    in_transformers: bool = True  # whether transformers has a rope type of this name


@dataclass(frozen=True)
class Rope:
    """One rope dictionary with what the rest of the configuration adds to it."""

    rope_type: RopeType
    values: Mapping[str, Any]  # the dictionary without nulls
    head_dim: int  # of the head, or of the part of it that rotation is about
    width: int  # how much of that is rotated
    base: float
    trained_length: int | None  # positions before any extension; None where nothing says
    longest: int | None  # ``max_position_embeddings``; None where nothing says

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
