"""The tables of a model: kept where they can be seen, and handed down to where they are used."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pickle import dumps
from types import FunctionType
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.backends.base import Backend
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.positional import check_company
from posenc.guards import may_look
from posenc.kernels.rows import rows_at
from posenc.positions import Coordinates, consecutive

FEWEST_ROWS = 64

Rotations = tuple[tuple[tuple[QueryKeyEncoding, Tensor], ...], Tensor | None]
"""Encodings of queries and keys with their tables, and which rows of these the tokens take."""


@dataclass(frozen=True)
class AttentionTables:
    """What attention is handed: each encoding that acts in it, with its table.

    Args:
        queries_keys: Encodings of queries and keys, in order.
        scores: Encodings of scores, in order.
        backend: What computes attention, where the caller has chosen that for all layers; it
            holds what encodings of scores and masks say, and ``scores`` is empty.
        positions: Which rows of the tables of queries and keys the tokens take, where these tables
            are kept and have rows 0, 1, 2, …; ``None``: they have one row a token.
        readers: Encodings of scores that read the hidden state.

    Raises:
        ValueError: Encodings do not stand beside each other, or one takes the heads behind the
            tokens (``heads_first`` is false).
    """

    queries_keys: tuple[tuple[QueryKeyEncoding, Tensor], ...] = ()
    scores: tuple[tuple[ScoreEncoding, Tensor], ...] = ()
    backend: Backend | None = None
    positions: Tensor | None = None
    readers: tuple[ScoreEncoding, ...] = ()

    def __post_init__(self) -> None:
        rotations = [encoding for encoding, _ in self.queries_keys]
        check_company(rotations, [encoding for encoding, _ in self.scores], rotated_before=False)
        for encoding in rotations:
            if not getattr(encoding, "heads_first", True):
                raise ValueError(
                    f"{type(encoding).__name__} was built with heads_first=False; attention holds "
                    f"[batch, heads, seq, head_dim]. Build it with heads_first=True."
                )

    def rows_of(self, table: Tensor) -> Tensor:
        """One row a token of a table of queries and keys."""
        return table if self.positions is None else table[self.positions]


@dataclass(frozen=True)
class Kept:
    """One stored table, and all that shaped it.

    Attributes:
        rows: The table at positions 0 … size − 1, or the profile of a relative bias at distances
            −(size − 1) … size − 1.
        size: Number of positions it serves.
        dtype: The dtype asked for.
        device: Where it lies.
        settings: The attributes of the encoding when it was built.
    """

    rows: Tensor
    size: int
    dtype: torch.dtype
    device: torch.device
    settings: dict[str, object]

    def serves(
        self, encoding: nn.Module, size: int, dtype: torch.dtype, device: torch.device
    ) -> bool:
        """Whether nothing that shaped the table has changed, and it is long enough."""
        return (
            size <= self.size
            and dtype == self.dtype
            and device == self.device
            and _unchanged(self.settings, settings(encoding))
        )


class Tables:
    """Tables of the encodings of one model, built once and gathered by position.

    A table is rebuilt when the encoding, dtype, device or length that shaped it changes. Only those
    of this library's own encodings are kept, and of these none with parameters, buffers or tensors:
    gradients and checkpoints must reach them. What shapes the table of a caller's encoding cannot
    be known: a list, a closure, a draw at random in training. It is computed at each pass, for the
    positions at hand, as every table is past ``most`` positions and while compiling; that is the
    same, since a row depends on its position alone.

    It is no part of a state dict, and a copied or unpickled model starts with an empty one.

    Args:
        most: The largest number of positions to keep rows for.

    Raises:
        ValueError: ``most`` is no whole number from 0 on.

    Example:
        >>> from posenc import Sinusoidal
        >>> tables, encoding = Tables(), Sinusoidal(4)
        >>> torch.equal(tables.rows(encoding, torch.tensor([7, 3])),
        ...             encoding.table(torch.tensor([7, 3])))
        True
        >>> tables.kept[encoding].size
        64
    """

    def __init__(self, most: int = 2**16):
        check_whole(0, most=most)
        self.most = most
        self.kept: WeakKeyDictionary[nn.Module, Kept] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, int]:
        return {"most": self.most}

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__init__(**state)

    def __repr__(self) -> str:
        return f"Tables({', '.join(f'{e!r}: {k.size}' for e, k in self.kept.items())})"

    def rows(
        self,
        encoding: TokenEncoding | QueryKeyEncoding,
        positions: Int64[Tensor, "*batch seq"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Tensor:
        """``encoding.table(positions, dtype=dtype)``, gathered from the kept rows if they serve.

        Args:
            encoding: An encoding of tokens, or of queries and keys.
            positions: Where the tokens stand. Grids (with an axis of coordinates) and real
                coordinates are not kept; grids take the batch axis, ``[batch, seq, axes]``.
            dtype: The dtype of the table.
            below: A bound that no position reaches, if the caller knows one, and that none is
                negative; otherwise the positions are looked at, which on an accelerator waits for
                it.

        Raises:
            IndexError: ``below`` was given, and a position is negative.
        """
        kept = self.kept_rows(encoding, positions, dtype=dtype, below=below)
        if kept is None:
            return encoding.table(positions, dtype=dtype)  # type: ignore[arg-type]
        return rows_at(kept, positions)  # type: ignore[arg-type]

    def kept_rows(
        self,
        encoding: TokenEncoding | QueryKeyEncoding,
        positions: Int64[Tensor, "*batch seq"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Tensor | None:
        """The rows 0, 1, 2, … that are kept, if they reach all positions; arguments as above."""
        if isinstance(positions, Coordinates) or positions.ndim > 2:
            return None
        size = self._size(encoding, positions, below)
        if size is None:
            return None
        return self._built(encoding, size, dtype, positions.device)

    def rotations(
        self,
        encodings: tuple[QueryKeyEncoding, ...],
        positions: Int64[Tensor, "*batch seq"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Rotations:
        """Kept tables with the rows to read, if all encodings read rows; else gathered tables."""
        whole = isinstance(positions, Tensor)
        if whole and all(encoding.reads_rows for encoding in encodings):
            kept = [self.kept_rows(e, positions, dtype=dtype, below=below) for e in encodings]
            tables = tuple(
                (e, rows) for e, rows in zip(encodings, kept, strict=True) if rows is not None
            )
            if len(tables) == len(encodings):
                return tables, positions
        gathered = (self.rows(e, positions, dtype=dtype, below=below) for e in encodings)
        return tuple(zip(encodings, gathered, strict=True)), None

    def biases(
        self,
        encoding: ScoreEncoding,
        q_positions: Int64[Tensor, "*batch q_len"] | Coordinates,
        k_positions: Int64[Tensor, "*batch k_len"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Tensor:
        """``encoding.table(q_positions, k_positions, dtype=dtype)``.

        A relative bias is gathered from its kept profile; other score encodings are computed.
        """
        if isinstance(q_positions, Coordinates) or isinstance(k_positions, Coordinates):
            return encoding.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        flat = q_positions.ndim < 3 and k_positions.ndim < 3
        size = None
        if encoding.has_profile and flat:
            size = self._size(encoding, k_positions, below, q_positions)
        if size is None:
            return encoding.table(q_positions, k_positions, dtype=dtype)
        profile = self._built(encoding, size, dtype, q_positions.device)
        distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
        return rows_at(profile, distance + profile.shape[-1] // 2, dim=1).movedim(0, -3)

    def _size(
        self, encoding: nn.Module, positions: Tensor, below: int | None, *others: Tensor
    ) -> int | None:
        """How many positions must be kept to serve these, or ``None`` where none should be."""
        if not may_look(positions) or not positions.numel():
            return None
        if not self._may_keep(encoding):
            return None
        if below is None:
            ends = [int(end) for some in (positions, *others) for end in some.aminmax()]
            below = max(ends) + 1 if min(ends) >= 0 else None
        return None if below is None or below > self.most else below

    def _may_keep(self, encoding: nn.Module) -> bool:
        """Whether it is known, as one is that has the settings with which it was kept."""
        kept = self.kept.get(encoding)
        same = kept is not None and _unchanged(kept.settings, settings(encoding))
        return _owns_nothing(encoding) and (same or _is_known(encoding))

    def _built(
        self, encoding: nn.Module, size: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        kept = self.kept.get(encoding)
        if kept is None or not kept.serves(encoding, size, dtype, device):
            size = min(max(FEWEST_ROWS, 1 << (size - 1).bit_length()), self.most)
            rows = _build(encoding, size, dtype, device)
            kept = Kept(rows, size, dtype, device, settings(encoding))
            self.kept[encoding] = kept
        return kept.rows


def _owns_nothing(encoding: nn.Module) -> bool:
    return next(encoding.parameters(), None) is None and next(encoding.buffers(), None) is None


def _is_known(encoding: nn.Module) -> bool:
    """Whether its settings alone shape its table: it is ours, and all that it holds is settled.

    What FSDP or a parametrization puts in the place of a class or a parameter is neither.
    """
    parts = list(encoding.modules())
    return all(type(part).__module__.startswith(OURS) for part in parts) and all(
        _is_settled(value, in_list=isinstance(value, list))
        for part in parts
        for name, value in vars(part).items()
        if name not in INTERNAL
    )


def _is_settled(value: object, *, in_list: bool) -> bool:
    """Whether nobody changes it in place; what a list as an attribute holds is compared."""
    if isinstance(value, SETTLED):
        return True
    if isinstance(value, tuple | frozenset) or (in_list and isinstance(value, list)):
        return all(_is_settled(each, in_list=in_list) for each in value)
    if isinstance(value, FunctionType):
        return value.__closure__ is None and str(value.__module__).startswith("posenc.")
    if not str(type(value).__module__).startswith("posenc."):
        return False
    if isinstance(value, Coordinates | nn.Module):
        return False
    # Schedules, profiles and channels may hold those of a caller.
    held = getattr(value, "__dict__", {}).items()
    return all(_is_settled(each, in_list=True) for name, each in held if name[0] != "_")


def _build(encoding: nn.Module, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # what is kept may serve a backward pass later
        if getattr(encoding, "has_profile", False):
            return encoding.profile(  # type: ignore[operator]
                consecutive(2 * size - 1, start=1 - size, device=device), dtype=dtype
            )
        return encoding.table(consecutive(size, device=device), dtype=dtype)  # type: ignore[operator]


INTERNAL = frozenset(vars(nn.Module()))

OURS = ("posenc.", "torch.nn.modules.container")
"""Where the classes of encodings and of their parts are from."""

SETTLED = (int, float, complex, str, bytes, type(None), range, Fraction, Decimal, torch.dtype,
           torch.device)  # fmt: skip
"""What stays what it is, as tuples of it do, and objects of our own that hold nothing else."""


def settings(encoding: nn.Module) -> dict[str, object]:
    """The classes and attributes of an encoding's parts, whose change makes its tables stale."""
    held: dict[str, object] = {}
    for part, module in encoding.named_modules():
        held[part] = type(module)
        for name, value in vars(module).items():
            if name not in INTERNAL:
                told = isinstance(value, list)
                held[f"{part}.{name}"] = _Told(value, dumps(value)) if told else value
    return held


class _Told(NamedTuple):
    """A list, and what it held."""

    value: list
    held: bytes


def _unchanged(before: dict[str, object], now: dict[str, object]) -> bool:
    return before.keys() == now.keys() and all(_same(before[name], now[name]) for name in now)


def _same(one: object, other: object) -> bool:
    # By identity: an attribute that nobody has set anew is still the same object.
    if isinstance(one, _Told) and isinstance(other, _Told):
        return one.value is other.value and one.held == other.held
    return one is other
