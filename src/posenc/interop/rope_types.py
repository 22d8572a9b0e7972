"""The rope dictionary of a configuration, turned into a schedule of frequencies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.frequencies import (
    NTK,
    DynamicNTK,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    Schedule,
    YaRN,
)
from posenc.interop.configurations import finite

COMMON = frozenset(
    {
        "rope_type",
        "type",
        "rope_theta",
        "partial_rotary_factor",
        "mrope_section",
        "mrope_interleaved",
        "interleaved",
    }
)
"""Keys that every rope dictionary may have."""

KEYS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "ntk_alpha": ("factor", "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "attention_factor",
        "truncate",
        "finetuned",  # what the authors' own files say of the weights
        "max_position_embeddings",  # Ministral repeats it here
        "llama_4_scaling_beta",  # of Ministral's query temperature, which is no rotation
    ),
    "llama3": (
        "factor",
        "original_max_position_embeddings",
        "low_freq_factor",
        "high_freq_factor",
    ),
    "longrope": (
        "factor",
        "original_max_position_embeddings",
        "short_factor",
        "long_factor",
        "attention_factor",
        "short_mscale",
        "long_mscale",
    ),
    "proportional": ("factor",),
}
"""Keys of each rope type beside the common ones."""

LISTS = ("short_factor", "long_factor", "mrope_section")
"""Keys with several numbers; the others have one."""

UNREAD = ("rope_type", "type", "mrope_interleaved", "interleaved", "truncate", "finetuned")
"""Keys with names and switches."""


@dataclass(frozen=True)
class Rope:
    """One rope dictionary with what the rest of the configuration adds to it.

    Attributes:
        kind: The rope type.
        values: The dictionary without nulls.
        head_dim: Width of the head, or of the part of it that rotation is about.
        width: How much of that is rotated.
        base: Base of the powers.
        trained_length: Positions before any extension; None where nothing says.
        longest: ``max_position_embeddings``; None where nothing says.
    """

    kind: str
    values: Mapping[str, Any]
    head_dim: int
    width: int
    base: float
    trained_length: int | None
    longest: int | None

    @property
    def plain(self) -> Geometric:
        """The frequencies before any rescaling."""
        return Geometric(self.width, self.base)

    @property
    def factor(self) -> float | None:
        """By how much the length is extended: given, or target over trained length."""
        if "factor" in self.values or self.kind not in ("yarn", "longrope"):
            return self.values.get("alpha" if self.kind == "ntk_alpha" else "factor")
        return self.length("longest") / self.length("trained_length")

    def needed(self, key: str) -> Any:
        """A value that this rope type cannot do without.

        Raises:
            ValueError: It is not there.
        """
        if key not in self.values:
            raise ValueError(
                f"Rope type {self.kind!r} needs {key!r}; the rope dictionary has "
                f"{', '.join(sorted(self.values))}. Add it."
            )
        return self.values[key]

    def length(self, which: str) -> int:
        """``trained_length`` or ``longest``, which this rope type cannot do without."""
        value = getattr(self, which)
        if value is None:
            raise ValueError(
                f"Rope type {self.kind!r} depends on the trained length; the configuration has "
                f"neither original_max_position_embeddings nor max_position_embeddings. Add one."
            )
        return value


def kind_of(values: Mapping[str, Any], family: str = "") -> str:
    """The rope type that a dictionary means, old names included.

    Raises:
        ValueError: There is no such type, or the dictionary has a key that it does not know.

    Example:
        >>> kind_of({"type": "su", "short_factor": [1.0], "long_factor": [1.0]})
        'longrope'
    """
    named = values.get("rope_type") or values.get("type") or "default"
    kind = {"su": "longrope", "mrope": "default"}.get(str(named), named)
    if kind == "yarn" and "short_factor" in values and family.startswith("phi"):
        kind = "longrope"  # the first files of Phi-3 called it so
    if kind == "dynamic" and values.get("alpha"):
        kind = "ntk_alpha"  # HunYuan: a fixed stretch of the base
    if not isinstance(named, str) or kind not in KEYS:
        raise ValueError(
            f"The rope type is {named!r}; known are {', '.join(KEYS)}, and the old names su and "
            f"mrope. A type of your own can be built as a schedule and given to Rotary."
        )
    known = COMMON | set(KEYS[kind])
    if unknown := sorted(set(values) - known):
        raise ValueError(
            f"The rope dictionary of type {kind!r} has the unknown key "
            f"{', '.join(map(repr, unknown))}; known are {', '.join(sorted(known))}. Correct or "
            f"remove it: what it should do would be lost."
        )
    for key, value in values.items():
        _check_value(key, value)
    return kind


def _check_value(key: str, value: Any) -> None:
    """Refuse what is not of the kind that a key has; null is as good as absent."""
    if value is None or key in UNREAD:
        return
    if key not in LISTS:
        finite(key, value)
        return
    if not isinstance(value, list | tuple):
        raise ValueError(f"{key} is {value!r}; it must be a list of numbers. Correct the file.")
    for number in value:
        finite(f"A number of {key}", number)


def schedule_of(rope: Rope, length: int | None = None) -> Schedule:
    """The frequencies that a rope dictionary means.

    Args:
        rope: The dictionary, read.
        length: Of the sequences, for the types that depend on it; if not given, that with which
            transformers starts: the trained length.

    Raises:
        ValueError: A value is missing or does not fit.

    Example:
        >>> schedule_of(Rope("linear", {"factor": 4.0}, 128, 128, 10000.0, 2048, 8192))
        Linear(of=Geometric(dim=128, base=10000.0), factor=4.0)
    """
    return BUILDERS[rope.kind](rope, length)


def _linear(rope: Rope, _length: int | None) -> Schedule:
    return Linear(rope.plain, rope.needed("factor"))


def _dynamic(rope: Rope, length: int | None) -> Schedule:
    trained = rope.length("longest")
    return DynamicNTK(rope.plain, rope.needed("factor"), trained).at(length or trained)


def _yarn(rope: Rope, _length: int | None) -> Schedule:
    trained, given = rope.length("trained_length"), rope.values
    return YaRN(
        rope.plain,
        rope.factor or 1.0,
        trained,
        beta_fast=given.get("beta_fast") or 32.0,
        beta_slow=given.get("beta_slow") or 1.0,
        truncate=given.get("truncate", True),
        mscale=given.get("mscale"),
        mscale_all_dim=given.get("mscale_all_dim"),
        attention=given.get("attention_factor"),
    )


def _llama3(rope: Rope, _length: int | None) -> Schedule:
    return Llama3(
        rope.plain,
        rope.needed("factor"),
        low=rope.needed("low_freq_factor"),
        high=rope.needed("high_freq_factor"),
        trained_length=rope.length("trained_length"),
    )


def _longrope(rope: Rope, length: int | None) -> Schedule:
    trained, given = rope.length("trained_length"), rope.values
    length = length or trained
    # Phi-3.5-MoE gives one attention factor for short sequences and one for long ones.
    scale = given.get("long_mscale" if length > trained else "short_mscale")
    return LongRoPE(
        rope.plain,
        rope.needed("short_factor"),
        rope.needed("long_factor"),
        trained,
        rope.factor or 1.0,
        scale if scale is not None else given.get("attention_factor"),
    ).at(length)


def _proportional(rope: Rope, _length: int | None) -> Schedule:
    fraction = rope.values.get("partial_rotary_factor", 1.0)
    plain = Proportional(rope.head_dim, fraction, rope.base)
    factor = rope.values.get("factor", 1.0)
    return plain if factor == 1 else Linear(plain, factor)


BUILDERS: dict[str, Callable[[Rope, int | None], Schedule]] = {
    "default": lambda rope, _length: rope.plain,
    "linear": _linear,
    "dynamic": _dynamic,
    "ntk_alpha": lambda rope, _length: NTK(rope.plain, rope.values["alpha"]),
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _proportional,
}
