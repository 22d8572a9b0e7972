"""Two implementations of one rotary encoding, compared bit by bit."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.audit.comparing.contents import content_of, random_content
from posenc.audit.comparing.differences import Difference, difference
from posenc.audit.comparing.effects import Effect, effect
from posenc.audit.comparing.sides import OwnSide, ProfileSide, Side, side_of, turned_by
from posenc.audit.models import expected_scale
from posenc.audit.report import CannotCheckError
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.numerics.arithmetic import PROFILES
from posenc.numerics.pairing import Pairing, split

LENGTH = 8_192
LONGEST = 1 << 20
NEAR = 64
"""So many positions are compared with a model's own code."""

RESOLVING = ("transformers", "exact")
"""Profiles whose way with frequencies by the length of a row is known."""


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
        sides = {n: {"name": each[0], "is": each[1]} for n, each in (("a", self.a), ("b", self.b))}
        return {**asdict(self), **sides, "equal": self.is_equal, "status": self.status}


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
        config: A Hugging Face configuration, or the path of one, that says it instead.
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
        CannotCheckError: They cannot be compared.
        ValueError: The configuration has no rotary encoding.

    Example:
        >>> found = parity("transformers", "sglang", encoding=Rotary(64), length=100)
        >>> found.is_equal, found.q.position, [stage.count for stage in found.stages[:2]]
        (False, 1, [0, 0])
        >>> parity("vllm", "flash-attention", encoding=Rotary(64), length=100).is_equal
        True
    """
    if length is not None:
        check_whole(length=length)
    scale, by_length = None, False
    if config is not None:
        encoding, scale, by_length = _of_config(config, length, layer_type, (a, b))
    one, other = sides = [
        side_of(each, encoding, name, **(said or {}))
        for each, name in zip((a, b), names, strict=True)
    ]
    own = [side for side in sides if isinstance(side, OwnSide)]
    told = "" if encoding is None else repr(encoding)
    if encoding is None:
        meant = {repr(side.meant): side for side in own[::-1] if side.meant is not None}
        told = " and ".join(
            f"{each} ({side.name})" if len(meant) > 1 else each for each, side in meant.items()
        )
        encoding = next((side.meant for side in own if side.meant is not None), None)
        scale = next((n for s in own if (n := expected_scale(s.view.subject))), None)
    if one.head_dim != other.head_dim:
        raise CannotCheckError(
            f"{one.name} rotates heads of width {one.head_dim} and {other.name} of "
            f"{other.head_dim}; give one width with --config or --arguments, or say with --call "
            f"how whole heads are rotated"
        )
    length = length or min([LENGTH, *(side.length or LENGTH for side in own)])
    notes = list(_of_pairings(own, encoding))
    for side in own:
        if side.view.gives_tables:
            notes.append(f"how cosines and sines of {side.name} are applied was not seen")
    if by_length:
        notes.append(f"frequencies are those of rows of {length:,} tokens; others have others")
    elif config is not None:
        notes += _of_its_own_code(sides, config, dtype)

    kv_heads = max(side.kv_heads for side in sides)
    factor = encoding.frequencies.softmax_factor if encoding else 1.0
    scale = scale or one.head_dim**-0.5 * factor
    contents = [(*random_content(kv_heads, length, one.head_dim, seed), "standard normal q and k")]
    if weights is not None:
        contents.append(content_of(Path(weights), kv_heads, length, one.head_dim, layer, seed))
    made = [[_rotated(side, q, k, dtype, notes) for side in sides] for q, k, _ in contents]
    held: Pairing = (encoding or own[0]).pairing or "half"
    turned, line = _turned(own, encoding), torch.arange(length)
    q_part, k_part = (
        difference(name, _pairs(x, held, *turned), _pairs(y, held, *turned), line)
        for name, x, y in zip("qk", *made[0], strict=True)
    )
    return Parity(
        (one.name, one.told), (other.name, other.told), told, str(dtype).removeprefix("torch."),
        length, stages(sides, line, dtype), q_part, k_part,
        [effect(each[2], x, y, scale) for each, (x, y) in zip(contents, made, strict=True)], notes,
    )  # fmt: skip


def _rotated(
    side: Side, q: Tensor, k: Tensor, dtype: torch.dtype, notes: list[str]
) -> tuple[Tensor, Tensor]:
    """What a side makes of content in a dtype, in that dtype."""
    q, k = side.both(q.to(dtype), k.to(dtype), torch.arange(q.shape[2]))
    words = f"{side.name} gives {q.dtype}, rounded here to {dtype}"
    if q.dtype != dtype and words not in notes:
        notes.append(words)
    return q.to(dtype), k.to(dtype)


def _pairs(x: Tensor, held: Pairing, begin: int, turned: int) -> Tensor:
    """``[1, heads, seq, 2, pairs]``, the channels that are not rotated as further pairs."""
    end = begin + turned
    both = torch.stack(split(x[..., begin:end], held), dim=-2)
    rest = torch.cat((x[..., :begin], x[..., end:]), -1)
    return torch.cat((both, rest.unflatten(-1, (2, -1))), dim=-1) if rest.shape[-1] else both


def _turned(own: list[OwnSide], encoding: Rotary | None) -> tuple[int, int]:
    """The first channel that is rotated, and how many are."""
    if encoding is not None:
        return turned_by(encoding)
    (begin, width), *others = {side.turned for side in own}
    whole = own[0].head_dim
    return (0, whole) if others or (whole - width) % 2 else (begin, width)


def _of_pairings(own: list[OwnSide], encoding: Rotary | None) -> Iterator[str]:
    """Own code of another pairing is another function, with the same weights."""
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
    profile = next((side for side in sides if side.name == "transformers"), None)
    if not isinstance(profile, ProfileSide):
        return
    hint = "; compare model:PATH of its configuration instead"
    try:
        own = side_of(_as_object(config), profile.rotary)
        assert isinstance(own, OwnSide)
        if own.head_dim != profile.head_dim:
            raise CannotCheckError(f"it rotates {own.head_dim} of {profile.head_dim} channels")
        q, k = random_content(own.kv_heads, min(NEAR, own.length or NEAR), own.head_dim, 0)
        made = [_rotated(side, q, k, dtype, []) for side in (profile, own)]
    except (CannotCheckError, ValueError, RuntimeError, ImportError, OSError) as reason:
        words = re.split(r"\n|; |: ", str(reason))[0]
        yield f"the profile is Llama's code, not held against that of this model ({words}){hint}"
        return
    if not all(map(torch.equal, *made)):
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


def stages(sides: list[Side], positions: Tensor, dtype: torch.dtype) -> list[Difference]:
    """Where two profiles part: angles, cosines and sines, and what is kept of them."""
    both = [
        (side.profile, side.rotary.frequencies) for side in sides if isinstance(side, ProfileSide)
    ]
    if len(both) < 2:
        return []
    found = []
    if all(profile.name != "exact" for profile, _ in both):
        angles = [p.angles(positions, p.frequencies(s), s)[None, :, None] for p, s in both]
        found.append(difference("angles", angles[0], angles[1], positions))
    tables = [torch.stack(p.table(positions, s), dim=-2)[None] for p, s in both]
    found.append(difference("cosines and sines", tables[0], tables[1], positions))
    kept = [table.to(p.kept(dtype)) for table, (p, _) in zip(tables, both, strict=True)]
    if kept[0].dtype != kept[1].dtype:  # what is the same number is equal
        kept = [table.float() for table in kept]
    return [*found, difference("the kept table", kept[0], kept[1], positions)]


def _of_config(
    config: Any, length: int | None, layer_type: str | None, targets: tuple[Any, Any]
) -> tuple[Rotary, float, bool]:
    """What rows of a length are rotated by, the scale of scores, and whether length matters."""
    from posenc.interop.rotary_config import rotary_from_config, softmax_scale_from_config

    at = lambda n: rotary_from_config(config, layer_type=layer_type, length=n)  # noqa: E731
    found, by_length = at(length), repr(at(None)) != repr(at(LONGEST))
    if by_length and length is None:
        raise CannotCheckError("frequencies go by the length of a row: say length=, or --length")
    unread = [t for t in targets if isinstance(t, str) and t in PROFILES and t not in RESOLVING]
    if by_length and unread:
        raise CannotCheckError(f"when {unread[0]} chooses frequencies by length was not read")
    found = found.rotary if isinstance(found, MultimodalRotary) else found
    if not isinstance(found, Rotary):
        raise CannotCheckError(f"the configuration means {found!r}; Rotary is compared alone")
    return found, softmax_scale_from_config(config, layer_type=layer_type), by_length
