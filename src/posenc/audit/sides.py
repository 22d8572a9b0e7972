"""One of two implementations: a profile, or somebody's own code through the adapters."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from posenc.audit import models
from posenc.audit.applied import applied_alone
from posenc.audit.identity.structures import structure
from posenc.audit.report import CannotCheckError, NotAskedError
from posenc.audit.subjects import subject_of
from posenc.audit.understanding import understood
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.numerics.arithmetic import PROFILES, Profile
from posenc.numerics.pairing import Pairing, convert_channels

EVIDENCE = {
    "run": "held bit for bit against the package's own files",
    "table": "its table held bit for bit against the package's own files, its kernel read, not run",
    "read": "read, not run",
}


@dataclass(frozen=True)
class Side:
    """One of two implementations."""

    name: str
    told: str  # what it is
    head_dim: int
    # q and k [1, heads, seq, head_dim] and positions [seq] → both rotated
    rotate: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
    pairing: Pairing | None  # None where it turns no pairs of one kind
    turned: tuple[int, int]  # the first channel that it rotates, and how many
    meant: Rotary | None  # what it computes, or what its own configuration says
    kv_heads: int = 2
    length: int | None = None  # the rows that it keeps
    scale: float | None = None  # of scores, as its configuration says
    profile: Profile | None = None


def turned_by(encoding: Rotary) -> tuple[int, int]:
    """The first channel that an encoding rotates, and how many."""
    rest = encoding.head_dim - encoding.rotated_dim
    return (rest if encoding.rotated == "suffix" else 0), encoding.rotated_dim


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
        return _profile(PROFILES[given], encoding)
    parts, applied = models.parts(given, None), None
    if parts is not None:
        found = [part for part in parts if part.kind == "rotary"]
        if len(found) != 1:
            told = f"{models.named(given)} has {len(found)} rotary parts"
            raise CannotCheckError(f"{told}; give the one to compare, as MODULE:FACTORY")
        given, applied, name = found[0].subject, found[0].applied, name or found[0].name
    subject = applied_alone(subject_of(given, dict(arguments or {}), name), applied)
    if dim is None and encoding is not None:  # whole heads where it takes them
        with suppress(CannotCheckError):
            whole = understood(subject, "rotary", layout, call, encoding.head_dim)
            if not whole.gives_tables:
                return _own(whole)
    return _own(understood(subject, "rotary", layout, call, dim))


def _profile(profile: Profile, meant: Rotary | None) -> Side:
    """A profile at the frequencies of an encoding; channels are permuted to a pairing it has."""
    if meant is None:
        raise CannotCheckError(
            f"{profile.name} is a profile, and computes what a configuration says: give --config "
            f'config.json, or --encoding "Rotary(128, base=500000)"'
        )
    known = meant.pairing in profile.pairings
    pairing = meant.pairing if known else profile.pairings[0]
    try:
        encoding = Rotary(
            meant.frequencies, head_dim=meant.head_dim, pairing=pairing, rotated=meant.rotated,
            arithmetic=profile.name,
        )  # fmt: skip
    except ValueError as reason:
        raise CannotCheckError(str(reason)) from None

    def paired(x: Tensor, to: Pairing) -> Tensor:
        part: Any = {"rotated_dim": meant.rotated_dim, "rotated": meant.rotated}
        return x if known else convert_channels(x, to, **part)

    def rotate(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        table = encoding.table(positions)
        q = encoding.encode_queries(paired(q, pairing), table)
        k = encoding.encode_keys(paired(k, pairing), table)
        return paired(q, meant.pairing), paired(k, meant.pairing)

    evidence = EVIDENCE[profile.evidence]
    told = f"{profile.said}. {profile.version}: {profile.source}; {evidence}"
    told += "" if known else f"; pairs channels {pairing}, for which q and k are permuted"
    return Side(
        profile.name, told, meant.head_dim, rotate, meant.pairing, turned_by(meant), meant,
        profile=profile,
    )  # fmt: skip


def _own(view: Any) -> Side:
    """Somebody's own implementation, called as ``posenc check`` calls it."""
    subject, shape = view.subject, structure(view.matrices(8))
    pairing: Any = None if shape.pairing == "other" else shape.pairing
    turned = (shape.start, shape.width) if pairing and not shape.width % 2 else (0, shape.dim)
    meant, known = models.meant(subject, None), view.built_for

    def rotate(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        try:
            queries, keys = view.both(q, k, positions[None])
            # one that takes one tensor is given keys as queries
            return queries, view.both(k, k, positions[None])[0] if keys is None else keys
        except NotAskedError as reason:
            raise CannotCheckError(
                f"{subject.name} refuses {len(positions):,} positions of {q.dtype}: {reason}. Try "
                f"a smaller --length"
            ) from None

    return Side(
        subject.name, view.understood, view.dim, rotate, pairing, turned,
        meant.rotary if isinstance(meant, MultimodalRotary) else meant, view.kv_heads,
        known if known and known >= 16 else None, models.expected_scale(subject),
    )  # fmt: skip
