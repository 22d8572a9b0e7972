"""One of two implementations: a profile, or somebody's own code through the adapters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from posenc.audit import models
from posenc.audit.adapters import expression, rotary
from posenc.audit.adapters.calls import WIDTH_NAMES
from posenc.audit.adapters.rotary_view import RotaryView
from posenc.audit.applied import applied_alone
from posenc.audit.identity import structures
from posenc.audit.report import CannotCheckError, NotAskedError
from posenc.audit.subjects import Subject, subject_of
from posenc.encodings.queries_keys import Rotary
from posenc.numerics.arithmetic import PROFILES, Profile
from posenc.numerics.pairing import Pairing, convert_channels

EVIDENCE = {
    "run": "held bit for bit against the package's own files",
    "table": "its table held bit for bit against the package's own files, its kernel read, not run",
    "read": "read, not run",
}


class Side(Protocol):
    """Something that rotates queries and keys.

    Attributes:
        name: What it was asked for as.
        told: What it is, and how that is known.
        pairing: Which channels it pairs; None for another order.
        is_permuted: Whether q and k are brought into its pairing, as a checkpoint would be for it.
        kv_heads: Number of key heads that it takes beside 4 query heads.
        head_dim: Width of a head.
    """

    name: str
    told: str
    pairing: Pairing | None
    is_permuted: ClassVar[bool]
    kv_heads: int
    head_dim: int

    def both(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """``[1, heads, seq, head_dim]`` rotated, in the channels of its own pairing."""
        ...


@dataclass
class ProfileSide:
    """A profile, at the frequencies of a rotary encoding."""

    profile: Profile
    rotary: Rotary
    kv_heads: int = 2
    is_permuted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.name, self.head_dim = self.profile.name, self.rotary.head_dim
        known = EVIDENCE[self.profile.evidence]
        self.told = f"{self.profile.said}. {self.profile.version}: {self.profile.source}; {known}"
        usual, wanted = self.profile.pairings, self.rotary.pairing
        paired = wanted if wanted in usual else usual[0]
        self.pairing: Pairing | None = paired
        if self.pairing != wanted:
            self.told += f"; pairs channels {self.pairing}, for which q and k are permuted"
        held = self.rotary
        self.encoding = Rotary(
            held.frequencies, head_dim=held.head_dim, pairing=paired, rotated=held.rotated,
            arithmetic=self.name,
        )  # fmt: skip

    def both(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """By the encoding in this arithmetic; the exact one by its own kernels."""
        table = self.encoding.table(positions)
        return self.encoding.encode_queries(q, table), self.encoding.encode_keys(k, table)


@dataclass
class OwnSide:
    """Somebody's own implementation, called as ``posenc check`` calls it."""

    name: str
    view: RotaryView
    is_permuted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.told = self.view.understood
        self.kv_heads, self.head_dim = self.view.kv_heads, self.view.dim
        shape = structures.structure(self.view.matrices(8))
        known = shape.pairing in ("half", "interleaved")
        self.pairing: Pairing | None = shape.pairing if known else None  # type: ignore[assignment]
        self.turned = (
            (shape.start, shape.width) if known and shape.width % 2 == 0 else (0, shape.dim)
        )

    def both(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """By its own call; keys as queries where it takes one tensor.

        Raises:
            CannotCheckError: It refuses these positions or this dtype.
        """
        rows = positions[None]
        if not self.view.moves and not torch.equal(positions, torch.arange(len(positions))):
            raise CannotCheckError(f"{self.name} takes no positions; compare from position 0 on")
        try:
            queries, keys = self.view.both(q, k, rows)
            if keys is None:
                keys = self.view.both(k, k, rows)[0]
        except NotAskedError as reason:
            raise CannotCheckError(
                f"{self.name} refuses {len(positions):,} positions of {q.dtype}: {reason}. Try a "
                f"smaller --length"
            ) from None
        return queries, keys


def side_of(given: Any, encoding: Rotary | None, name: str | None = None, **said: Any) -> Side:
    """A profile by its name, or an own implementation.

    Args:
        given: A name of a profile; the path of a configuration or a model of transformers, whose
            rotary part is taken; or a class, a function or an instance.
        encoding: What profiles compute.
        name: What to call an own implementation.
        said: ``arguments``, ``layout``, ``call`` and ``dim`` of an own implementation, as of
            ``check``.

    Raises:
        CannotCheckError: A profile without an encoding, one that cannot express it, or something
            that does not rotate queries and keys.
    """
    if isinstance(given, str) and given in PROFILES:
        if encoding is None:
            raise CannotCheckError(
                f"{given} is a profile, and computes what a configuration says: give --config "
                f'config.json, or --encoding "Rotary(128, base=500000)"'
            )
        try:
            return ProfileSide(PROFILES[given], encoding)
        except ValueError as reason:
            raise CannotCheckError(str(reason)) from None
    parts, applied = models.parts(given, None), None
    if parts is not None:
        part = _rotary_part(parts, given)
        given, applied = part.subject, part.applied
    arguments, call = dict(said.get("arguments") or {}), said.get("call")
    subject = applied_alone(subject_of(given, arguments, name), applied)
    layout, dim = said.get("layout"), said.get("dim")
    if dim is None and encoding is not None and not _has_a_width(subject.fresh()):
        dim = encoding.head_dim
    if call is not None:
        view = expression.called(subject, call, layout, dim, "rotary")
    else:
        try:
            view = rotary.rotary_of(subject, layout, dim)
        except CannotCheckError:
            raise CannotCheckError(
                f"{subject.name} rotates queries and keys in no form that is known; `posenc check` "
                f"lists the forms. Say it outright with --call"
            ) from None
        if encoding is not None and dim is None and view.dim == encoding.rotated_dim:
            view = _of_whole_heads(subject, layout, encoding) or view
    return OwnSide(subject.name, view)


def _of_whole_heads(subject: Subject, layout: str | None, encoding: Rotary) -> RotaryView | None:
    """How it is called with whole heads of which it rotates a part; None where it is not."""
    if encoding.head_dim == encoding.rotated_dim:
        return None
    try:
        view = rotary.rotary_of(subject, layout, encoding.head_dim)
    except CannotCheckError:
        return None
    shape = structures.structure(view.matrices(8))
    begin = encoding.head_dim - encoding.rotated_dim if encoding.rotated == "suffix" else 0
    seen = not view.applied.startswith("it gives")
    return view if seen and (shape.start, shape.width) == (begin, encoding.rotated_dim) else None


def _has_a_width(thing: Any) -> bool:
    """Whether a thing is built for one width of heads, or takes any that comes."""
    if isinstance(thing, nn.Module) and [*thing.parameters(), *thing.buffers()]:
        return True
    return any(isinstance(getattr(thing, name, None), int) for name in WIDTH_NAMES)


def _rotary_part(parts: list[models.Part], given: Any) -> models.Part:
    found = [part for part in parts if part.kind == "rotary"]
    if len(found) != 1:
        raise CannotCheckError(
            f"{models.named(given)} has {len(found)} rotary parts; give the one to compare, as "
            f"MODULE:FACTORY"
        )
    return found[0]


def in_pairing(x: Tensor, side: Side, held: Pairing, encoding: Rotary | None) -> Tensor:
    """Content whose channels are paired as ``held``, in the channels of a side."""
    return _converted(x, side.pairing, held, encoding) if side.is_permuted else x


def from_pairing(x: Tensor, side: Side, held: Pairing, encoding: Rotary | None) -> Tensor:
    """What a side gives, in channels that are paired as ``held``."""
    return _converted(x, held, side.pairing, encoding) if side.is_permuted else x


def _converted(
    x: Tensor, to: Pairing | None, held: Pairing | None, encoding: Rotary | None
) -> Tensor:
    if to is None or held is None or to == held:
        return x
    if encoding is None:
        return convert_channels(x, to)
    return convert_channels(x, to, rotated_dim=encoding.rotated_dim, rotated=encoding.rotated)
