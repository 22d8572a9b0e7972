"""One of two implementations: a profile, or somebody's own code through the adapters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from posenc.audit import models
from posenc.audit.adapters import expression, rotary
from posenc.audit.adapters.rotary_view import RotaryView
from posenc.audit.adapters.sizes import WIDTH_NAMES
from posenc.audit.applied import applied_alone
from posenc.audit.identity import structures
from posenc.audit.report import CannotCheckError, NotAskedError
from posenc.audit.subjects import subject_of
from posenc.encodings.queries_keys import Rotary
from posenc.numerics.arithmetic import PROFILES, Profile
from posenc.numerics.pairing import Pairing, convert_channels

EVIDENCE = {
    "run": "held bit for bit against the package's own files",
    "table": "its table held bit for bit against the package's own files, its kernel read, not run",
    "read": "read, not run",
}


@dataclass
class ProfileSide:
    """A profile, at the frequencies of a rotary encoding."""

    profile: Profile
    rotary: Rotary
    kv_heads: int = 2

    def __post_init__(self) -> None:
        held, usual = self.rotary, self.profile.pairings
        self.name, self.head_dim = self.profile.name, held.head_dim
        pairing = held.pairing if held.pairing in usual else usual[0]
        known = EVIDENCE[self.profile.evidence]
        self.told = f"{self.profile.said}. {self.profile.version}: {self.profile.source}; {known}"
        if pairing != held.pairing:
            self.told += f"; pairs channels {pairing}, for which q and k are permuted"
        self.encoding = Rotary(
            held.frequencies, head_dim=held.head_dim, pairing=pairing, rotated=held.rotated,
            arithmetic=self.name,
        )  # fmt: skip

    def both(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """q and k ``[1, heads, seq, head_dim]`` rotated; their channels are paired as meant."""
        table = self.encoding.table(positions)
        q, k = (self._paired(x, self.encoding.pairing, self.rotary.pairing) for x in (q, k))
        q, k = self.encoding.encode_queries(q, table), self.encoding.encode_keys(k, table)
        q, k = (self._paired(x, self.rotary.pairing, self.encoding.pairing) for x in (q, k))
        return q, k

    def _paired(self, x: Tensor, to: Pairing, held: Pairing) -> Tensor:
        if to == held:
            return x
        part = {"rotated_dim": self.rotary.rotated_dim, "rotated": self.rotary.rotated}
        return convert_channels(x, to, **part)  # type: ignore[arg-type]


@dataclass
class OwnSide:
    """Somebody's own implementation, called as ``posenc check`` calls it."""

    name: str
    view: RotaryView

    def __post_init__(self) -> None:
        self.told = self.view.understood
        self.kv_heads, self.head_dim = self.view.kv_heads, self.view.dim
        shape = structures.structure(self.view.matrices(8))
        known = shape.pairing != "other"
        self.pairing: Pairing | None = shape.pairing if known else None  # type: ignore[assignment]
        whole = not known or shape.width % 2
        # the first channel that it rotates, and how many
        self.turned = (0, shape.dim) if whole else (shape.start, shape.width)

    @property
    def length(self) -> int | None:
        """The rows that it keeps."""
        known = self.view.built_for
        return known if known and known >= 16 else None

    @cached_property
    def meant(self) -> Rotary | None:
        """What its own configuration says."""
        return models.expected(self.view.subject, None)

    def both(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """By its own call; keys as queries where it takes one tensor."""
        rows = positions[None]
        try:
            queries, keys = self.view.both(q, k, rows)
            return queries, self.view.both(k, k, rows)[0] if keys is None else keys
        except NotAskedError as reason:
            raise CannotCheckError(
                f"{self.name} refuses {len(positions):,} positions of {q.dtype}: {reason}. Try a "
                f"smaller --length"
            ) from None


Side = ProfileSide | OwnSide


def side_of(
    given: Any,
    encoding: Rotary | None,
    name: str | None = None,
    *,
    arguments: Mapping[str, Any] | None = None,
    layout: str | None = None,
    call: str | None = None,
    dim: int | None = None,
) -> Side:
    """A profile by its name, or an own implementation called by what is said as of ``check``."""
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
        found = [part for part in parts if part.kind == "rotary"]
        if len(found) != 1:
            told = f"{models.named(given)} has {len(found)} rotary parts"
            raise CannotCheckError(f"{told}; give the one to compare, as MODULE:FACTORY")
        (part,) = found
        given, applied, name = part.subject, part.applied, name or part.name
    subject = applied_alone(subject_of(given, dict(arguments or {}), name), applied)
    if dim is None and encoding is not None and not _has_a_width(subject.fresh()):
        dim = encoding.head_dim
    if call is not None:
        return OwnSide(subject.name, expression.called(subject, call, layout, dim, "rotary"))
    try:
        view = rotary.rotary_of(subject, layout, dim)
        if encoding is not None and dim is None and view.dim == encoding.rotated_dim:
            view = _of_whole_heads(view, layout, encoding)
    except CannotCheckError:
        raise CannotCheckError(
            f"{subject.name} rotates queries and keys in no form that is known; `posenc check` "
            f"lists the forms. Say it outright with --call"
        ) from None
    return OwnSide(subject.name, view)


def _of_whole_heads(view: RotaryView, layout: str | None, encoding: Rotary) -> RotaryView:
    """The view with whole heads of which it rotates a part; as it is where it takes none."""
    if encoding.head_dim == encoding.rotated_dim:
        return view
    try:
        whole = rotary.rotary_of(view.subject, layout, encoding.head_dim)
    except CannotCheckError:
        return view
    shape = structures.structure(whole.matrices(8))
    same = (shape.start, shape.width) == turned_by(encoding)
    return whole if same and not whole.gives_tables else view


def turned_by(encoding: Rotary) -> tuple[int, int]:
    """The first channel that an encoding rotates, and how many."""
    rest = encoding.head_dim - encoding.rotated_dim
    return (rest if encoding.rotated == "suffix" else 0), encoding.rotated_dim


def _has_a_width(thing: Any) -> bool:
    """Whether a thing is built for one width of heads, or takes any that comes."""
    if isinstance(thing, nn.Module) and [*thing.parameters(), *thing.buffers()]:
        return True
    return any(isinstance(getattr(thing, name, None), int) for name in WIDTH_NAMES)
