"""What the encodings of image windows share: displacements on a grid, and rows chosen by them."""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.bias import ScoreBias
from posenc.encodings.shapes import Biases, BothPositions, Dtype, KeyPixels, QueryPixels
from posenc.guards import demand, floating, graph_looks, may_look, working_dtype
from posenc.positions import NOWHERE, checked, checked_distances, placeless
from posenc.positions.placeless import MANY, with_places

SPECIAL = 3
"""Pairs with tokens that stand nowhere: from one to a place, from a place to one, among them."""


def checked_window(window: int | tuple[int, int], name: str = "window") -> tuple[int, int]:
    """Height and width of a window; one number stands for both."""
    sizes = window if isinstance(window, tuple) else (window, window)
    for size in sizes:
        check_whole(**{name: size})
    return sizes


def displacements(
    q_positions: QueryPixels, k_positions: KeyPixels, window: tuple[int, int], *, name: str
) -> BothPositions:
    """q − k of points; NOWHERE, + 1 or + 2 where the query, the key or neither has a place."""
    queries = _points(checked(q_positions, "q_positions"), "q_positions")
    keys = _points(checked(k_positions, "k_positions"), "k_positions")
    lost = placeless(queries).unsqueeze(-1), placeless(keys).unsqueeze(-2)
    nowhere = lost[0] | lost[1]
    queries = with_places(queries, lost[0].squeeze(-1))
    keys = with_places(keys, lost[1].squeeze(-2))
    along = [checked_distances(queries[..., axis], keys[..., axis]) for axis in range(2)]
    apart = torch.stack(along, dim=-3).masked_fill(nowhere.unsqueeze(-3), 0)
    within = apart.abs() < torch.tensor(window, device=apart.device).view(2, 1, 1)
    words = f"Tokens lie further apart than {name}'s window of {window}."
    if graph_looks(apart):
        demand(within.all(), words)
    elif _known(apart) and not bool(within.all()):
        raise ValueError(words)
    marks = NOWHERE + lost[1].to(torch.int64) + (lost[0] & lost[1]).to(torch.int64)
    return torch.where(nowhere.unsqueeze(-3), marks.unsqueeze(-3), apart)


def without_place(apart: BothPositions) -> Bool[Tensor, "*batch q_len k_len"] | None:
    """For which pairs there is no displacement; ``None`` where all have one, as can be seen."""
    absent = apart.select(-3, 0) < NOWHERE + MANY
    return absent if not _known(absent) or bool(absent.any()) else None


def _known(x: Tensor) -> bool:
    """Whether the values of ``x`` can be looked at without a wait."""
    return x.is_cpu and may_look(x)


def _points(positions: Tensor, name: str) -> Tensor:
    if positions.ndim < 2 or positions.shape[-1] != 2:
        shape = tuple(positions.shape)
        raise ValueError(f"{name} have shape {shape}; they must be points [*batch, seq, 2].")
    return positions


class WindowBias(ScoreBias):
    """A bias of the displacement within a window of an image; a subclass defines ``rows``.

    The bias of Δy, Δx is row ``(Δy + H − 1)(2W − 1) + Δx + W − 1``. Three more rows are for pairs
    with tokens that stand nowhere; they are zeros if not there.
    """

    is_relative = True
    window: tuple[int, int]

    @abstractmethod
    def rows(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "offsets heads"]:
        """The bias of every displacement, computed in ``dtype``."""

    def table(
        self, q_positions: QueryPixels, k_positions: KeyPixels, *, dtype: Dtype = None
    ) -> Biases:
        """The bias of every pair, in the dtype of the parameters unless another is asked for."""
        apart = displacements(q_positions, k_positions, self.window, name=type(self).__name__)
        own = next(self.parameters()).dtype
        asked = own if dtype is None else floating(dtype)
        # Gradients of many pairs are summed in one row; in 16 bits their sum would stand still.
        rows = self.rows(torch.promote_types(asked, working_dtype(own)), apart.device)
        height, width = self.window
        dy, dx = apart.unbind(-3)
        index = (dy + height - 1) * (2 * width - 1) + dx + width - 1
        absent = without_place(apart)
        if absent is not None:
            within = (2 * height - 1) * (2 * width - 1)
            index = torch.where(absent, dy - NOWHERE + within, index)
            if len(rows) == within:
                rows = torch.cat((rows, rows.new_zeros(SPECIAL, rows.shape[1])))
        return F.embedding(index, rows).movedim(-1, -3).to(asked)
