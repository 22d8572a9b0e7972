"""Two implementations of one rotary encoding, compared bit by bit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.audit.differences import Difference, Effect, difference, effect
from posenc.audit.report import CannotCheckError
from posenc.audit.sides import HEADS, Side, content_of, side_of
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.numerics.arithmetic import PROFILES
from posenc.numerics.pairing import split

LENGTH = 8_192
LONGEST = 1 << 20
NEAR = 64  # so many positions are compared with a model's own code
RESOLVING = ("transformers", "exact")  # whose frequencies by the length of a row are known


@dataclass
class Parity:
    """Where the bits of two implementations part."""

    a: tuple[str, str]  # the first, with what it is
    b: tuple[str, str]  # the second
    encoding: str  # what both compute, in words; empty where no configuration says it
    dtype: str  # of queries and keys
    length: int  # positions 0 … length − 1 are compared
    stages: list[Difference]  # of two profiles: where they part between angles and the kept table
    q: Difference  # how rotated queries differ
    k: Difference  # how rotated keys differ
    effects: list[Effect]  # what that does to attention
    notes: list[str] = field(default_factory=list)  # what else is to be known

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
    scale, notes = None, list[str]()
    if config is not None:
        encoding, scale, by_length = _of_config(config, length, layer_type, (a, b))
        if by_length:
            notes.append(f"frequencies are those of rows of {length:,} tokens; others have others")
        elif "transformers" in (a, b):
            notes += _of_its_own_code(config, encoding, dtype)
    said = said or {}
    one, other = side_of(a, encoding, names[0], **said), side_of(b, encoding, names[1], **said)
    sides = [one, other]
    if one.head_dim != other.head_dim:
        raise CannotCheckError(
            f"{one.name} rotates heads of width {one.head_dim} and {other.name} of "
            f"{other.head_dim}; give one width with --config, --arguments or --call"
        )
    if len({side.pairing for side in sides} - {None}) > 1:
        told = " and ".join(f"{side.name} {side.pairing}" for side in sides)
        notes.append(f"channels are paired otherwise ({told}): two functions of the same weights")
    meant = [encoding] if encoding else [side.meant for side in sides if side.meant]
    own_scale = one.scale or other.scale if encoding is None else None
    usual_scale = one.head_dim**-0.5 * (meant[0].frequencies.softmax_factor if meant else 1.0)
    scale = scale or own_scale or usual_scale
    length = length or min([LENGTH, *(side.length for side in sides if side.length)])

    kv_heads = max(side.kv_heads for side in sides)
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(seed))
    q, k = (draw(1, heads, length, one.head_dim) for heads in (HEADS, kv_heads))
    contents = [(q, k, "standard normal q and k")]
    if weights is not None:
        contents.append(content_of(Path(weights), kv_heads, length, one.head_dim, layer, seed))
    made = [[_rotated(side, q, k, dtype, notes) for side in sides] for q, k, _ in contents]
    form = next((side for side in sides if side.profile), one)
    q_part, k_part = (
        difference(name, _pairs(x, form), _pairs(y, form))
        for name, x, y in zip("qk", *made[0], strict=True)
    )
    return Parity(
        (one.name, one.told), (other.name, other.told),
        " and ".join(dict.fromkeys(map(repr, meant))), str(dtype).removeprefix("torch."),
        length, _stages(sides, length, dtype), q_part, k_part,
        [effect(each[2], x, y, scale) for each, (x, y) in zip(contents, made, strict=True)], notes,
    )  # fmt: skip


def _rotated(
    side: Side, q: Tensor, k: Tensor, dtype: torch.dtype, notes: list[str]
) -> tuple[Tensor, Tensor]:
    """What a side makes of content in a dtype, in that dtype."""
    q, k = side.rotate(q.to(dtype), k.to(dtype), torch.arange(q.shape[2]))
    words = f"{side.name} gives {q.dtype}, rounded here to {dtype}"
    if q.dtype != dtype and words not in notes:
        notes.append(words)
    return q.to(dtype), k.to(dtype)


def _pairs(x: Tensor, form: Side) -> Tensor:
    """``[heads, seq, 2, pairs]``, the channels that are not rotated as further pairs."""
    begin, count = form.turned
    turned = torch.stack(split(x[0, ..., begin : begin + count], form.pairing or "half"), dim=-2)
    rest = torch.cat((x[0, ..., :begin], x[0, ..., begin + count :]), -1)
    return torch.cat((turned, rest.unflatten(-1, (2, -1))), dim=-1) if rest.numel() else turned


def _stages(sides: list[Side], length: int, dtype: torch.dtype) -> list[Difference]:
    """Where two profiles part: angles, cosines and sines, and what is kept of them."""
    both = [(s.profile, s.meant.frequencies) for s in sides if s.profile and s.meant]
    if len(both) < 2:
        return []
    found, positions = [], torch.arange(length)
    if all(profile.name != "exact" for profile, _ in both):
        angles = [p.angles(positions, p.frequencies(s), s)[None, :, None] for p, s in both]
        found.append(difference("angles", *angles))
    tables = [torch.stack(p.table(positions, s), dim=-2)[None] for p, s in both]
    kept = [table.to(p.kept(dtype)) for table, (p, _) in zip(tables, both, strict=True)]
    if kept[0].dtype != kept[1].dtype:  # what is the same number is equal
        kept = [table.float() for table in kept]
    return [*found, difference("cosines and sines", *tables), difference("the kept table", *kept)]


def _of_its_own_code(config: Any, meant: Rotary, dtype: torch.dtype) -> list[str]:
    """Whether transformers rotates this model as its profile does, which is that of Llama."""
    try:
        if isinstance(config, Mapping):
            from transformers import AutoConfig

            config = AutoConfig.for_model(**config)
        if parity(config, "transformers", encoding=meant, dtype=dtype, length=NEAR).is_equal:
            return []
        told = "and that of this model gives other bits"
    except Exception:  # of whatever kind odd fields bring about
        told = "which could not be held against that of this model"
    return [f"the profile is Llama's code, {told}; compare model:PATH of its configuration instead"]


def _of_config(
    config: Any, length: int | None, layer_type: str | None, targets: tuple[Any, Any]
) -> tuple[Rotary, float, bool]:
    """What rows of a length are rotated by, the scale of scores, and whether length matters."""
    from posenc.interop.rotary_config import rotary_from_config, softmax_scale_from_config

    read = partial(rotary_from_config, config, layer_type=layer_type)
    found: Any = read(length=length)
    by_length = repr(read(length=None)) != repr(read(length=LONGEST))
    if by_length and length is None:
        raise CannotCheckError("frequencies go by the length of a row: say length=, or --length")
    unread = [t for t in targets if isinstance(t, str) and t in PROFILES and t not in RESOLVING]
    if by_length and unread:
        raise CannotCheckError(f"when {unread[0]} chooses frequencies by length was not read")
    found = found.rotary if isinstance(found, MultimodalRotary) else found
    return found, softmax_scale_from_config(config, layer_type=layer_type), by_length
