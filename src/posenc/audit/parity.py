"""Two implementations of one rotary encoding, compared bit by bit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.audit.comparing.contents import content_of, random_content
from posenc.audit.comparing.differences import Difference, difference
from posenc.audit.comparing.effects import Effect, effect
from posenc.audit.comparing.sides import (
    OwnSide,
    ProfileSide,
    Side,
    from_pairing,
    in_pairing,
    side_of,
)
from posenc.audit.models import expected, expected_scale
from posenc.audit.report import CannotCheckError
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.numerics.arithmetic import PROFILES
from posenc.numerics.pairing import Pairing, split

SAID = ("arguments", "layout", "call", "dim")
"""What is said of own implementations."""

LENGTH = 8_192
LONGEST = 1 << 20


@dataclass
class Parity:
    """Where the bits of two implementations part.

    Attributes:
        a: The first, with what it is.
        b: The second.
        encoding: What both compute, in words; empty where no configuration says it.
        dtype: Of queries and keys.
        length: Positions 0 … length − 1 are compared.
        stages: For two profiles: where they part on the way from angles to the kept table.
        q: How rotated queries differ.
        k: How rotated keys differ.
        effects: What that does to attention.
        notes: What else is to be known.
    """

    a: tuple[str, str]
    b: tuple[str, str]
    encoding: str
    dtype: str
    length: int
    stages: list[Difference]
    q: Difference
    k: Difference
    effects: list[Effect]
    notes: list[str] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether all bits of queries and keys are equal."""
        return self.q.is_none and self.k.is_none

    @property
    def status(self) -> int:
        """0 where all bits of queries and keys are equal, else 1."""
        return 0 if self.is_equal else 1

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "a": dict(zip(("name", "is"), self.a, strict=True)),
            "b": dict(zip(("name", "is"), self.b, strict=True)),
            "encoding": self.encoding,
            "dtype": self.dtype,
            "length": self.length,
            "equal": self.is_equal,
            "status": self.status,
            "stages": [asdict(stage) for stage in self.stages],
            "q": asdict(self.q),
            "k": asdict(self.k),
            "effects": [asdict(each) for each in self.effects],
            "notes": self.notes,
        }


def parity(
    a: Any,
    b: Any,
    *,
    encoding: Rotary | None = None,
    config: Any = None,
    layer_type: str | None = None,
    dtype: torch.dtype = torch.bfloat16,
    length: int | None = None,
    weights: str | Path | None = None,
    layer: int = 0,
    seed: int = 0,
    said: Mapping[str, Any] | None = None,
    names: tuple[str | None, str | None] = (None, None),
) -> Parity:
    """Compare how two implementations rotate the same queries and keys, to the bit.

    Args:
        a: The name of a profile (``posenc.numerics.arithmetic.PROFILES``), or an own
            implementation as ``check`` takes it.
        b: The other.
        encoding: What both compute.
        config: A Hugging Face configuration, or the path of one, that says it.
        layer_type: Of which of its layers, as ``"full_attention"``, where these differ.
        dtype: Of queries and keys.
        length: Number of positions; up to 8192 if not given, fewer where an own module has fewer.
        weights: A safetensors file with ``q`` and ``k``, or with projections, whose scores and
            softmax are compared too.
        layer: Of which layer the projections are.
        seed: Of the random content.
        said: ``arguments``, ``layout``, ``call`` and ``dim`` of own implementations.
        names: What to call own implementations.

    Raises:
        CannotCheckError: They cannot be compared; its words say why.
        ValueError: The configuration has no rotary encoding, or is given beside an encoding;
            ``length``, ``layer`` or ``seed`` is no whole number that it can be; a layer is given
            without weights, or a type of layers without a configuration; or something is
            ``said`` that nothing reads.

    Example:
        >>> found = parity("transformers", "sglang", encoding=Rotary(64), length=100)
        >>> found.is_equal, found.q.position, [stage.count for stage in found.stages[:2]]
        (False, 1, [0, 0])
        >>> parity("vllm", "flash-attention", encoding=Rotary(64), length=100).is_equal
        True
    """
    check_whole(0, layer=layer, seed=seed)
    _check_said(said or {}, a, b)
    if layer and weights is None:
        raise ValueError(
            f"layer is {layer}, and there are no weights to take it of. Pass weights=."
        )
    if length is not None:
        check_whole(length=length)
    if length is not None and length > LONGEST:
        raise ValueError(f"length is {length}; it must be from 1 to {LONGEST:,} positions.")
    if encoding is not None and config is not None:
        raise ValueError("encoding and config are given, and both say what is computed. Pass one.")
    if layer_type is not None and config is None:
        raise ValueError(
            f"layer_type is {layer_type!r}, and there is no configuration whose layers have types. "
            f"Pass config=."
        )
    scale, by_length = None, False
    if config is not None:
        encoding, scale, by_length = _of_config(config, length, layer_type)
        if by_length:
            _check_by_length(a, b)
    sides = [
        side_of(each, encoding, name, **dict(said or {}))
        for each, name in zip((a, b), names, strict=True)
    ]
    told = "" if encoding is None else repr(encoding)
    if encoding is None:
        own = [(side.name, found) for side in sides if (found := _own_configuration(side))]
        encoding = own[0][1] if own else None
        scale = next((each for side in sides if (each := _own_scale(side))), None)
        told = _of_each(own)
    length = length or min([LENGTH, *(_built_for(side) for side in sides)])
    head_dim = _common_width(sides)
    kv_heads = max(side.kv_heads for side in sides)
    held: Pairing = (encoding.pairing if encoding else sides[0].pairing) or "half"
    comparison = _Comparison(sides, held, encoding, dtype)
    for words in _of_pairings(sides, encoding):
        comparison.note(words)
    for side in sides:
        if isinstance(side, OwnSide) and side.view.applied.startswith("it gives"):
            comparison.note(f"how cosines and sines of {side.name} are applied was not seen")
    if by_length:
        comparison.note(f"frequencies are those of rows of {length:,} tokens; others have others")
    else:
        for words in _of_its_own_code(sides, config, dtype):
            comparison.note(words)

    q, k = random_content(kv_heads, length, head_dim, seed)
    first, second = comparison.rotated(q, k)
    factor = encoding.frequencies.softmax_factor if encoding else 1.0
    scale = scale or head_dim**-0.5 * factor
    effects = [effect("standard normal q and k", first, second, scale)]
    if weights is not None:
        path = Path(weights)
        *content, whose = content_of(path, kv_heads, length, head_dim, layer, seed)
        both = comparison.rotated(content[0], content[1])
        effects.append(effect(whose, both[0], both[1], scale))
    line = torch.arange(length)
    q_part, k_part = (
        difference(name, comparison.pairs(x), comparison.pairs(y), line)
        for name, x, y in zip(("q", "k"), first, second, strict=True)
    )
    return Parity(
        (sides[0].name, sides[0].told), (sides[1].name, sides[1].told), told,
        str(dtype).removeprefix("torch."), length, stages(sides, line, dtype), q_part, k_part,
        effects, comparison.notes,
    )  # fmt: skip


def _check_said(said: Mapping[str, Any], a: Any, b: Any) -> None:
    if unknown := sorted(set(said) - set(SAID)):
        raise ValueError(f"said has {', '.join(unknown)}; it takes {', '.join(SAID)}.")
    named = [name for name, value in said.items() if value is not None and value != {}]
    if named and all(isinstance(each, str) and each in PROFILES for each in (a, b)):
        raise ValueError(
            f"said has {named[0]}, which is of own implementations, and {a} and {b} are profiles. "
            f"Leave it out."
        )


class _Comparison:
    """Both sides on the same content, in the channels of one pairing."""

    def __init__(
        self, sides: list[Side], held: Pairing, encoding: Rotary | None, dtype: torch.dtype
    ):
        self.sides, self.encoding, self.dtype = sides, encoding, dtype
        self.held: Pairing = held
        self.notes: list[str] = []
        self.turned = _turned(sides, encoding)

    def rotated(self, q: Tensor, k: Tensor) -> list[tuple[Tensor, Tensor]]:
        line, made = torch.arange(q.shape[2]), []
        for side in self.sides:
            given = [in_pairing(x.to(self.dtype), side, self.held, self.encoding) for x in (q, k)]
            both = side.both(given[0], given[1], line)
            if both[0].dtype != self.dtype:
                self.note(f"{side.name} gives {both[0].dtype}, rounded here to {self.dtype}")
            made.append(
                tuple(from_pairing(x.to(self.dtype), side, self.held, self.encoding) for x in both)
            )
        return made

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def pairs(self, x: Tensor) -> Tensor:
        """``[1, heads, seq, 2, pairs]``, the channels that are not rotated as further pairs."""
        begin, turned = self.turned
        if turned == x.shape[-1]:
            return torch.stack(split(x, self.held), dim=-2)
        part = x[..., begin : begin + turned]
        rest = torch.cat((x[..., :begin], x[..., begin + turned :]), -1)
        both = torch.stack(split(part, self.held), dim=-2)
        return torch.cat((both, rest.unflatten(-1, (2, -1))), dim=-1)


def _turned(sides: list[Side], encoding: Rotary | None) -> tuple[int, int]:
    """The first channel that is rotated, and how many are."""
    if encoding is not None:
        begin = encoding.head_dim - encoding.rotated_dim if encoding.rotated == "suffix" else 0
        return begin, encoding.rotated_dim
    own = {side.turned for side in sides if isinstance(side, OwnSide)}
    begin, width = next(iter(own))
    rest = sides[0].head_dim - width
    return (begin, width) if len(own) == 1 and rest % 2 == 0 else (0, sides[0].head_dim)


def _of_pairings(sides: list[Side], encoding: Rotary | None) -> Iterator[str]:
    """Own code of another pairing is another function, with the same weights."""
    own = [side for side in sides if isinstance(side, OwnSide)]
    if encoding is not None:
        for side in own:
            if side.pairing not in (None, encoding.pairing):
                yield (
                    f"{side.name} pairs channels {side.pairing}, and {encoding.pairing} is meant: "
                    f"with the same weights it is another function"
                )
    elif len({side.pairing for side in own} - {None}) == 2:
        told = " and ".join(f"{side.name} {side.pairing}" for side in own)
        yield f"channels are paired otherwise ({told}): two functions, with the same weights"


def _of_its_own_code(sides: list[Side], config: Any, dtype: torch.dtype) -> Iterator[str]:
    """Whether transformers rotates this model as its profile does, which is that of Llama."""
    profiles = [side for side in sides if isinstance(side, ProfileSide)]
    profile = next((side for side in profiles if side.name == "transformers"), None)
    if config is None or profile is None:
        return
    hint = "; compare model:PATH of its configuration instead"
    try:
        own = side_of(_as_object(config), profile.rotary)
        if own.head_dim != profile.head_dim:
            raise CannotCheckError(f"it rotates {own.head_dim} of {profile.head_dim} channels")
        seq = min(NEAR, _built_for(own))
        q, k = random_content(own.kv_heads, seq, own.head_dim, 0)
        line = torch.arange(seq)
        told = [x.to(dtype) for x in (q, k)]
        given = [in_pairing(x, profile, own.pairing or "half", profile.rotary) for x in told]
        made = [
            from_pairing(x, profile, own.pairing or "half", profile.rotary)
            for x in profile.both(given[0], given[1], line)
        ]
        same = all(
            torch.equal(x, y) for x, y in zip(made, own.both(told[0], told[1], line), strict=True)
        )
    except (CannotCheckError, ValueError, RuntimeError, ImportError, OSError) as reason:
        words = re.split(r"\n|; |: ", str(reason))[0]
        yield f"the profile is Llama's code, not held against that of this model ({words}){hint}"
        return
    if not same:
        yield f"the profile is Llama's code, and that of this model gives other bits{hint}"


def _as_object(config: Any) -> Any:
    """A dictionary as the configuration that transformers makes of it."""
    if not isinstance(config, Mapping):
        return config
    from transformers import AutoConfig

    try:
        return AutoConfig.for_model(**config)
    except Exception as error:  # of whatever kind odd fields bring about
        raise CannotCheckError("transformers makes no configuration of it") from error


NEAR = 64
"""So many positions are held against a model's own code."""


def stages(sides: list[Side], positions: Tensor, dtype: torch.dtype) -> list[Difference]:
    """Where two profiles part: angles, cosines and sines, and what is kept of them."""
    if not all(isinstance(side, ProfileSide) for side in sides):
        return []
    profiles = [(side.profile, side.rotary.frequencies) for side in sides]  # type: ignore[attr-defined]
    found = []
    if all(profile.name != "exact" for profile, _ in profiles):
        angles = [
            profile.angles(positions, profile.frequencies(schedule), schedule)
            for profile, schedule in profiles
        ]
        found.append(_of_two("angles", [x[None, :, None] for x in angles], positions))
    tables = [
        torch.stack(profile.table(positions, schedule), dim=-2)[None]
        for profile, schedule in profiles
    ]
    found.append(_of_two("cosines and sines", tables, positions))
    kept = [
        table.to(profile.kept(dtype)) for table, (profile, _) in zip(tables, profiles, strict=True)
    ]
    if kept[0].dtype != kept[1].dtype:  # what is the same number is equal
        kept = [table.float() for table in kept]
    found.append(_of_two("the kept table", kept, positions))
    return found


def _of_two(name: str, values: list[Tensor], positions: Tensor) -> Difference:
    first, second = values
    return difference(name, first, second, positions)


def _check_by_length(*targets: Any) -> None:
    """Refuse profiles of engines whose way with dynamic lengths was not read."""
    unread = [t for t in targets if isinstance(t, str) and t not in ("transformers", "exact")]
    if named := [t for t in unread if t in PROFILES]:
        raise CannotCheckError(
            f"the configuration means other frequencies by the length of a row, and when "
            f"{named[0]} chooses which was not read; compare transformers, exact and own "
            f"implementations"
        )


def _of_config(
    config: Any, length: int | None, layer_type: str | None
) -> tuple[Rotary, float, bool]:
    """What rows of a length are rotated by, the scale of scores, and whether length matters."""
    from posenc.interop.rotary_config import rotary_from_config, softmax_scale_from_config

    at = lambda n: rotary_from_config(config, layer_type=layer_type, length=n)  # noqa: E731
    found, by_length = at(length), repr(at(None)) != repr(at(LONGEST))
    if length is None and by_length:
        raise CannotCheckError(
            "the configuration means other frequencies for longer rows (dynamic or longrope); say "
            "the length that is meant: length=, or --length"
        )
    found = found.rotary if isinstance(found, MultimodalRotary) else found
    if not isinstance(found, Rotary):
        raise CannotCheckError(f"the configuration means {found!r}; Rotary is compared alone")
    return found, softmax_scale_from_config(config, layer_type=layer_type), by_length


def _own_configuration(side: Side) -> Rotary | None:
    return expected(side.view.subject, None) if isinstance(side, OwnSide) else None


def _own_scale(side: Side) -> float | None:
    return expected_scale(side.view.subject) if isinstance(side, OwnSide) else None


def _of_each(own: Sequence[tuple[str, Rotary]]) -> str:
    """What own configurations mean, by whom where they mean different things."""
    told = dict.fromkeys(repr(found) for _, found in own)
    if len(told) < 2:
        return "".join(told)
    return " and ".join(f"{found!r} ({name})" for name, found in own)


def _built_for(side: Side) -> int:
    """The rows that an own module keeps; a profile has no end."""
    known = side.view.built_for if isinstance(side, OwnSide) else None
    return known if known and known >= 16 else LENGTH


def _common_width(sides: list[Side]) -> int:
    first, second = (side.head_dim for side in sides)
    if first != second:
        for side in sides:
            if isinstance(side, OwnSide) and side.view.applied.startswith("it gives"):
                raise CannotCheckError(
                    f"{side.name} gives cosines and sines of {side.head_dim} channels, and how "
                    f"they are applied to heads of {max(first, second)} was not seen; say it with "
                    f"--call"
                )
        raise CannotCheckError(
            f"{sides[0].name} rotates heads of width {first} and {sides[1].name} of {second}; "
            f"give both one width, with --config or --arguments, or say with --call how whole "
            f"heads are rotated"
        )
    return first
