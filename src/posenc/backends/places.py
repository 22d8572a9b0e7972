"""Where queries and keys stand, checked, and where encodings take them to stand."""

from collections.abc import Iterable, Sequence
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor, nn

from posenc.backends.specification import LAYOUT
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.positional import Positional
from posenc.guards import may_look
from posenc.positions import Coordinates, checked, common_scale, consecutive, over_padding

MOST_AXES = 8
"""Of points that are told from rows of so many tokens."""


class Places:
    """Where queries and keys stand, and whether the queries are known to be among the keys."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        q_positions: Any,
        k_positions: Any,
        *,
        keys_are_cut: bool = False,
    ):
        self.keys_are_cut = keys_are_cut
        self.batch, self.q_len, self.k_len = len(query), query.shape[-2], key.shape[-2]
        if (q_positions is None) != (k_positions is None):
            raise ValueError(
                "Positions were given for one side alone. Pass q_positions and k_positions, or "
                "neither."
            )
        self.placed = q_positions is not None
        self.q_positions = self.k_positions = None
        if not self.placed:
            return
        same = q_positions is k_positions
        self.q_positions = self._fitting(q_positions, self.q_len, "q_positions", query.device)
        self.k_positions = (
            self.q_positions
            if same and self.q_len == self.k_len
            else self._fitting(k_positions, self.k_len, "k_positions", query.device)
        )
        if self.k_positions is not self.q_positions:
            self.q_positions, self.k_positions = _alike(self.q_positions, self.k_positions)
        if (self.q_positions.ndim > 2) != (self.k_positions.ndim > 2):
            raise ValueError(
                f"q_positions have shape {tuple(self.q_positions.shape)} and k_positions "
                f"{tuple(self.k_positions.shape)}; give both as a grid, or none."
            )

    @property
    def queries_are_keys(self) -> bool:
        """Whether queries and keys are known to be the same tokens, in the same order."""
        # Some of the keys may stand where the queries do and be others, as padding is.
        if self.keys_are_cut or self.q_len != self.k_len:
            return False
        if self.q_positions is self.k_positions:
            return True
        assert self.q_positions is not None
        assert self.k_positions is not None
        return _equal(self.q_positions, self.k_positions)

    @property
    def queries_are_last(self) -> bool:
        """Whether the queries are the last of the keys, as without positions they are."""
        return self.queries_are_keys or (not self.placed and self.q_len <= self.k_len)

    def _fitting(
        self, positions: Any, seq: int, name: str, device: torch.device
    ) -> Tensor | Coordinates:
        positions = checked(positions, name, device=device, reals=True)
        shape, batch = tuple(positions.shape), self.batch
        if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
            raise ValueError(
                f"{name} have shape {shape}; there are {batch} rows of {seq} tokens, on the third "
                f"axis of {LAYOUT}. Pass [{seq}] for all rows alike, [{batch}, {seq}], or "
                f"[{batch}, {seq}, axes] for a grid."
            )
        return positions


def _equal(one: Tensor | Coordinates, other: Tensor | Coordinates) -> bool:
    """Whether both are known to be the same, as of one scale."""
    if one is other:
        return True
    values = (side.values if isinstance(side, Coordinates) else side for side in (one, other))
    if one.shape != other.shape or not all(map(may_look, values)):
        return False
    equal = one == other
    return isinstance(equal, Tensor) and bool(equal.all())


def _alike(
    queries: Tensor | Coordinates, keys: Tensor | Coordinates
) -> tuple[Tensor | Coordinates, Tensor | Coordinates]:
    """Both in steps of one size, if one is of coordinates."""
    if not (isinstance(queries, Coordinates) or isinstance(keys, Coordinates)):
        return queries, keys
    here, there = common_scale(Coordinates(queries), Coordinates(keys))
    return here, there


def check_places(
    asked: Places, positional: Positional, is_causal: bool, window: int | None
) -> None:
    """Refuse what would need a place of the queries that nobody has given, and points in rows."""
    _check_no_points("q_positions", asked.q_positions, positional)
    if asked.k_positions is not asked.q_positions:
        _check_no_points("k_positions", asked.k_positions, positional)
    if asked.q_positions is not None and asked.q_positions.ndim > 2:
        instead = "Pass attn_mask with the neighbors of each point."
        check_points("q_positions", asked.q_positions, positional.scores, (window,), instead)
        if is_causal and not asked.queries_are_keys:
            raise ValueError(
                "is_causal is True, positions are points of a grid, and the queries are not the "
                "keys: nobody knows which keys come later in the row. Pass attn_mask."
            )
    if asked.placed or asked.q_len <= asked.k_len:
        return
    needs = {
        "is_causal": is_causal,
        "window": window is not None,
        "positional": len(positional.queries_keys) or len(positional.scores),
    }
    for name, needed in needs.items():
        if needed:
            raise ValueError(
                f"There are {asked.q_len} queries and {asked.k_len} keys, read as {LAYOUT}, and "
                f"{name} needs to know where the queries stand. Pass q_positions and k_positions."
            )


def check_points(
    name: str,
    positions: Tensor | Coordinates,
    scores: Iterable[nn.Module],
    windows: Sequence[int | None],
    instead: str = "Leave the window out.",
) -> None:
    """Refuse points of a grid where a distance in one line is asked for.

    Raises:
        ValueError: There is a window, or an encoding of scores that takes one number a token.
    """
    if positions.ndim < 3:
        return
    for window in windows:
        if window is not None:
            raise ValueError(
                f"window is {window} and positions are points of a grid, which have no distance "
                f"in one line. {instead}"
            )
    values = positions.values if isinstance(positions, Coordinates) else positions
    if not may_look(values) or not values.numel():
        return
    for encoding in scores:
        if encoding not in _of_points:
            if _takes_numbers(cast(ScoreEncoding, encoding), positions):
                raise ValueError(
                    f"{name} have shape {tuple(positions.shape)}, points of a grid, and "
                    f"{type(encoding).__name__} takes one number a token. Pass [seq] or [batch, "
                    f"seq], or an encoding of points, as SwinBias."
                )
            _of_points.add(encoding)


def _takes_numbers(encoding: ScoreEncoding, positions: Tensor | Coordinates) -> bool:
    """Whether it reads the axes of points as so many tokens."""
    points = positions[:1, :1].expand(1, positions.shape[-1] + 1, -1)  # another number than axes
    try:
        with torch.no_grad():
            table = encoding.table(points, points)  # type: ignore[arg-type]
    except (IndexError, TypeError, ValueError):  # for reasons of its own, which it says itself
        return False
    both = (points.shape[1],) * 2
    return tuple(table.shape[-2:]) != both and _takes(encoding, points[0, :, 0])


def _check_no_points(
    name: str, positions: Tensor | Coordinates | None, positional: Positional
) -> None:
    """Refuse ``[batch, seq]`` that an encoding takes for the points of one row, ``[seq, axes]``."""
    if positions is None or positions.ndim != 2:
        return
    values = positions.values if isinstance(positions, Coordinates) else positions
    if not may_look(values) or not 1 < positions.shape[1] <= MOST_AXES:
        return  # rows of a graph may be of any length
    for encoding in (*positional.queries_keys, *positional.scores):
        if encoding in _of_rows:
            continue
        if _takes(encoding, positions[0]):
            _of_rows.add(encoding)
        elif _takes(encoding, positions):
            raise ValueError(
                f"{name} have shape {tuple(positions.shape)}, read as [batch, seq], and "
                f"{type(encoding).__name__} takes points. Pass [batch, seq, axes], as "
                f"grid(...)[None] for all rows alike."
            )


_of_rows: WeakSet[nn.Module] = WeakSet()
"""Encodings that are known to take one number a token, and no points."""

_of_points: WeakSet[nn.Module] = WeakSet()
"""Encodings of scores that are known to take points."""


@torch.no_grad()
def _takes(encoding: nn.Module, positions: Tensor | Coordinates) -> bool:
    sides = (positions,) * (2 if isinstance(encoding, ScoreEncoding) else 1)
    try:
        encoding.table(*sides)  # type: ignore[operator]
    except ValueError:
        return False
    return True


def remapped_places(
    positional: Positional, asked: Places, device: torch.device
) -> Tensor | Coordinates | None:
    """Where encodings take the tokens to stand, if positions are remapped."""
    if not positional.remaps:
        return None
    if not asked.queries_are_keys:
        raise ValueError(
            "positional changes positions, and the queries are not the keys: both would be drawn "
            "apart. Pass q_positions and k_positions that are changed already, and leave "
            "Positional(positions=...) out."
        )
    places = asked.k_positions
    if places is None:
        places = consecutive(asked.k_len, device=device)
    return positional.remapped(places)


def counted_places(
    positional: Positional,
    asked: Places,
    padding: Tensor | None,
    remapped: Tensor | Coordinates | None,
) -> Tensor | Coordinates | None:
    """Where encodings take the keys to stand, so that those that count tokens leave padding out."""
    scores = cast("Sequence[ScoreEncoding]", positional.scores)
    if padding is None or all(encoding.is_pairwise for encoding in scores):
        return remapped
    places = asked.k_positions if remapped is None else remapped
    if places is None:
        places = consecutive(asked.k_len, device=padding.device)
    if isinstance(places, Coordinates) or places.ndim > 2:
        return places
    return over_padding(places, padding)
