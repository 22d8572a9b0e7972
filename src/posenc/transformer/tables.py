"""The tables of a model: kept where they can be seen, and handed down to where they are used."""

from dataclasses import dataclass
from operator import is_
from typing import NamedTuple, cast

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
OURS = ("posenc", "builtins", "fractions", "decimal")
"""Where the classes of what shapes a kept table are from."""

Rotations = tuple[tuple[tuple[QueryKeyEncoding, Tensor], ...], Tensor | None]
"""Encodings of queries and keys with their tables, and which rows of these the tokens take."""


@dataclass(frozen=True)
class AttentionTables:
    """What attention is handed: each encoding that acts in it, with its table.

    Args:
        queries_keys: Encodings of queries and keys, in order.
        scores: Encodings of scores, in order.
        backend: What computes attention, where the caller has chosen that for all layers; it
            holds masks and what encodings of scores say, and nothing else is asked for these.
        positions: Which rows of the tables of queries and keys the tokens take, where these tables
            are kept and have rows 0, 1, 2, …; ``None``: they have one row a token.
        readers: Encodings of scores that read the hidden state.
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
            if not encoding.heads_first:
                name = type(encoding).__name__
                layout = "[batch, heads, seq, head_dim]"
                raise ValueError(f"{name} has heads_first=False; attention holds {layout}.")

    def rows_of(self, table: Tensor) -> Tensor:
        """One row a token of a table of queries and keys."""
        return table if self.positions is None else table[self.positions]


Key = tuple[nn.Module, torch.dtype, torch.device]
"""What a kept table is of, in which dtype, and where it lies."""


class Kept(NamedTuple):
    """A table of positions 0 … size − 1, or a profile at distances 1 − size … size − 1."""

    rows: Tensor
    size: int
    attributes: tuple[object, ...]  # what its encoding held when it was built


class Tables:
    """Tables of the encodings of one model, built once and gathered by position.

    Kept are those of this library's own encodings without parameters, buffers, tensors or parts of
    a caller's. All others are computed in each pass, as every table is past ``most`` positions and
    while compiling. An attribute that is set on an encoding takes effect, as
    ``rotary.frequencies = other``; after a change inside of one call ``clear``. A copied or
    unpickled model starts without tables.

    Args:
        most: The largest number of positions to keep rows for.

    Example:
        >>> from posenc import Sinusoidal
        >>> tables, encoding = Tables(), Sinusoidal(4)
        >>> torch.equal(tables.rows(encoding, torch.tensor([7, 3])),
        ...             encoding.table(torch.tensor([7, 3])))
        True
        >>> [kept.size for kept in tables.kept.values()]
        [64]
    """

    def __init__(self, most: int = 2**16):
        check_whole(0, most=most)
        self.most = most
        self.kept: dict[Key, Kept] = {}

    def __getstate__(self) -> dict[str, object]:
        return {"most": self.most, "kept": {}}

    def clear(self) -> None:
        """Forget all tables."""
        self.kept.clear()

    def rows(
        self,
        encoding: TokenEncoding | QueryKeyEncoding,
        positions: Int64[Tensor, "*batch seq"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Tensor:
        """``encoding.table(positions, dtype=dtype)``, gathered from the kept rows if they serve.

        ``below`` is a bound that no position reaches, where none is negative; if it is not given,
        positions are looked at, which on an accelerator waits for it. Grids and real coordinates
        are not kept.
        """
        kept = self._kept(encoding, dtype, below, positions)
        if kept is None:
            return encoding.table(positions, dtype=dtype)  # type: ignore[arg-type]
        return rows_at(kept, positions)  # type: ignore[arg-type]

    def rotations(
        self,
        encodings: tuple[QueryKeyEncoding, ...],
        positions: Int64[Tensor, "*batch seq"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Rotations:
        """Kept tables with the rows to read, if all encodings read rows; else gathered tables."""
        kept = []
        for each in encodings if isinstance(positions, Tensor) else ():
            rows = self._kept(each, dtype, below, positions) if each.reads_rows else None
            if rows is not None:
                kept.append((each, rows))
        if len(kept) == len(encodings) and isinstance(positions, Tensor):
            return tuple(kept), positions
        gathered = [self.rows(e, positions, dtype=dtype, below=below) for e in encodings]
        return tuple(zip(encodings, gathered, strict=True)), None

    def biases(
        self,
        encoding: ScoreEncoding,
        q_positions: Int64[Tensor, "*q_rows q_len"] | Coordinates,
        k_positions: Int64[Tensor, "*k_rows k_len"] | Coordinates,
        *,
        dtype: torch.dtype = torch.float32,
        below: int | None = None,
    ) -> Tensor:
        """``encoding.table(q_positions, k_positions, dtype=dtype)``.

        A relative bias is gathered from its kept profile; other score encodings are computed.
        """
        profile = None
        if encoding.has_profile:
            profile = self._kept(encoding, dtype, below, k_positions, q_positions)
        if profile is None:
            return encoding.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)  # type: ignore[union-attr]
        places = distance + profile.shape[-1] // 2
        return rows_at(profile, places, dim=1).movedim(0, -3)  # type: ignore[arg-type]

    def _kept(
        self,
        encoding: nn.Module,
        dtype: torch.dtype,
        below: int | None,
        *positions: Tensor | Coordinates,
    ) -> Tensor | None:
        """What is kept of an encoding, if it may be and reaches all positions."""
        for each in positions:
            if isinstance(each, Coordinates) or each.ndim > 2:
                return None
        places = cast("tuple[Tensor, ...]", positions)
        first = places[0]
        if not may_look(first) or not first.numel():
            return None
        key, attributes = (encoding, dtype, first.device), tuple(vars(encoding).values())
        kept = self.kept.get(key)
        # By identity: an attribute that nobody has set anew is still the same object.
        if kept is not None and not (
            len(attributes) == len(kept.attributes) and all(map(is_, attributes, kept.attributes))
        ):
            kept = None
            del self.kept[key]
        if kept is None and not _is_ours(encoding):
            return None
        if below is None:
            ends = [int(end) for some in places for end in some.aminmax()]
            below = max(ends) + 1 if min(ends) >= 0 else None
        if below is None or below > self.most:
            return None
        if kept is None or below > kept.size:
            size = min(max(FEWEST_ROWS, 1 << (below - 1).bit_length()), self.most)
            kept = self.kept[key] = Kept(_built(encoding, size, *key[1:]), size, attributes)
        return kept.rows


def _is_ours(encoding: nn.Module) -> bool:
    """Whether our own classes and numbers alone shape its table."""
    if next(encoding.parameters(), None) is not None or next(encoding.buffers(), None) is not None:
        return False
    parts = list(encoding.modules())
    held = [value for part in parts for name, value in vars(part).items() if name[0] != "_"]
    classes = {type(each) for each in (*parts, *held)} - {nn.ModuleList}
    return all(each.__module__.split(".")[0] in OURS for each in classes)


def _built(encoding: nn.Module, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # what is kept may serve a backward pass later
        if getattr(encoding, "has_profile", False):
            distance = consecutive(2 * size - 1, start=1 - size, device=device)
            return encoding.profile(distance, dtype=dtype)  # type: ignore[operator]
        return encoding.table(consecutive(size, device=device), dtype=dtype)  # type: ignore[operator]
