"""What is compared: profiles, or somebody's own code through the adapters, and q and k for both."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.audit import models
from posenc.audit.identity.structures import structure
from posenc.audit.report import CannotCheckError, NotAskedError
from posenc.audit.subjects import applied_alone, subject_of
from posenc.audit.understanding import understood
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.numerics.arithmetic import PROFILES, Profile
from posenc.numerics.pairing import Pairing, convert_channels

HEADS = 4  # so many heads of queries are compared

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
    parts, applied = models.parts(given), None
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
            f"{profile.name} computes what a configuration says: give --config or --encoding"
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

    part: Any = {"rotated_dim": meant.rotated_dim, "rotated": meant.rotated}
    paired = lambda x, to: x if known else convert_channels(x, to, **part)  # noqa: E731

    def rotate(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        table = encoding.table(positions)
        q, k = encoding.encode_both(paired(q, pairing), paired(k, pairing), table)
        return paired(q, meant.pairing), paired(k, meant.pairing)

    first = meant.head_dim - meant.rotated_dim if meant.rotated == "suffix" else 0
    told = f"{profile.said}. {profile.version}: {profile.source}; {EVIDENCE[profile.evidence]}"
    told += "" if known else f"; pairs channels {pairing}, for which q and k are permuted"
    return Side(
        profile.name, told, meant.head_dim, rotate, meant.pairing, (first, meant.rotated_dim),
        meant, profile=profile,
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
                f"{subject.name} refuses {len(positions):,} positions of {q.dtype}: {reason}"
            ) from None

    return Side(
        subject.name, view.understood, view.dim, rotate, pairing, turned,
        meant.rotary if isinstance(meant, MultimodalRotary) else meant, view.kv_heads,
        known if known and known >= 16 else None, models.expected_scale(subject),
    )  # fmt: skip


# Queries and keys.


def content_of(
    path: Path, kv_heads: int, length: int, head_dim: int, layer: int, seed: int
) -> tuple[Tensor, Tensor, str]:
    """q and k from a safetensors file, and in words what they are.

    Either tensors ``q`` and ``k`` ``[…, seq, head_dim]``, or the projections ``q_proj.weight`` and
    ``k_proj.weight`` of a layer with their biases, applied to standard normal hidden states.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            if {"q", "k"} <= {*file.keys()}:
                q, k = (file.get_tensor(n).float().flatten(0, -3)[:, :length] for n in "qk")
                told = f"tensors q and k of {path.name}, {q.shape[1]:,} tokens"
            else:
                q, k, told = _projected(file, path, layer, length, head_dim, seed)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise CannotCheckError(f"{path}: {error}") from None
    if q.shape[-1] != head_dim or len(q) % len(k):
        heads = f"{len(q)} query heads and {len(k)} key heads of {q.shape[-1]} channels"
        raise CannotCheckError(f"{path} has {heads}; groups of heads of {head_dim} are compared")
    return *_some_heads(q, k, kv_heads), told


def _projected(
    file: Any, path: Path, layer: int, length: int, head_dim: int, seed: int
) -> tuple[Tensor, Tensor, str]:
    """What the projections of a layer make of standard normal hidden states."""
    names, numbers = sorted(file.keys()), ([], [str(layer)])  # one layer alone has no number
    of_layer = [n for n in names if [part for part in n.split(".") if part.isdigit()] in numbers]
    query = next((n for n in of_layer if n.endswith("q_proj.weight")), None)
    if query is None:
        raise CannotCheckError(
            f"{path} has neither q and k nor projections of layer {layer}, as q_proj.weight and "
            f"k_proj.weight; it has {', '.join(names[:6])}"
        )
    made = []
    for name in (query, query.replace("q_proj", "k_proj")):
        weight, bias = file.get_tensor(name).float(), f"{name.removesuffix('weight')}bias"
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(length, weight.shape[-1], generator=generator) @ weight.T
        rows = rows + file.get_tensor(bias).float() if bias in names else rows
        made.append(rows.unflatten(-1, (-1, head_dim)).transpose(0, 1))
    told = f"{query} and its k_proj of {path.name}, on standard normal hidden states"
    around = query.removesuffix("q_proj.weight")
    norms = [n for n in of_layer if n.startswith(around) and "norm" in n.removeprefix(around)]
    if norms:
        told += f" ({' and '.join(norms)} left out: give tensors q and k to have the norms counted)"
    return made[0], made[1], told


def _some_heads(q: Tensor, k: Tensor, kv_heads: int) -> tuple[Tensor, Tensor]:
    """Four query heads and the key heads that they look at, ``[1, heads, rows, head_dim]``.

    The model's query head h looks at its key head h // group. Key heads that are too few come
    again, with other queries of their groups where there are some.
    """
    group, each = len(q) // len(k), HEADS // kv_heads
    again, keys = torch.arange(kv_heads) // len(k), torch.arange(kv_heads) % len(k)
    members = (again[:, None] * each + torch.arange(each)) % group
    return q[None, (keys[:, None] * group + members).flatten()], k[None, keys]
