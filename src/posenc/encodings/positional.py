"""Which encodings a model uses, in all three places, and what changes its positions before."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.encodings.base import PositionRemapping, QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.shapes import Row
from posenc.positions import Coordinates, checked

PLACES = {
    "tokens": TokenEncoding,
    "queries_keys": QueryKeyEncoding,
    "scores": ScoreEncoding,
    "positions": PositionRemapping,
}


class Positional(nn.Module):
    """The encodings of a model, place by place; those of one place apply in the order given.

    ``Positional()`` holds none (NoPE, Kazemnejad et al. 2023, arXiv:2305.19466).

    Args:
        tokens: Encodings added to the token embeddings.
        queries_keys: Encodings of queries and keys inside attention.
        scores: Encodings of the attention scores.

    Example:
        >>> from posenc import PoSE, Sinusoidal
        >>> Positional(Sinusoidal(16), positions=PoSE(longest=4096))
        Positional(
          positions=(PoSE(longest=4096, chunks=2),)
          (tokens): ModuleList(
            (0): Sinusoidal(16)
          )
          (queries_keys): ModuleList()
          (scores): ModuleList()
        )
    """

    def __init__(
        self,
        tokens: TokenEncoding | Iterable[TokenEncoding] = (),
        queries_keys: QueryKeyEncoding | Iterable[QueryKeyEncoding] = (),
        scores: ScoreEncoding | Iterable[ScoreEncoding] = (),
        positions: PositionRemapping | Iterable[PositionRemapping] = (),
    ):
        super().__init__()
        self.tokens = nn.ModuleList(_in_place("tokens", tokens))
        self.queries_keys = nn.ModuleList(_in_place("queries_keys", queries_keys))
        self.scores = nn.ModuleList(_in_place("scores", scores))
        self.positions: tuple[PositionRemapping, ...] = tuple(_in_place("positions", positions))
        check_company(self.queries_keys, self.scores)  # type: ignore[arg-type]

    @property
    def remaps(self) -> bool:
        """Whether ``remapped`` changes positions, in training or evaluation as this module is."""
        return any(self.training or not each.training_only for each in self.positions)

    def remapped(
        self, positions: Row, *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*batch seq"] | Coordinates:
        """Where the tokens are taken to stand: all changes of positions, in order.

        Each call draws anew: call it once, and hand the result to queries and keys alike.

        Args:
            positions: ``[seq]`` for all rows alike, or ``[batch, seq]``.
            generator: Draws what is random; torch's own if not given.
        """
        positions = checked(positions, reals=True)
        if not self.remaps:
            return positions
        if positions.ndim > 2:
            raise ValueError(f"{self.positions} takes [seq] or [batch, seq], no points.")
        for remapping in self.positions:
            if self.training or not remapping.training_only:
                positions = remapping(positions, generator=generator)  # type: ignore[arg-type]
        return positions

    def extra_repr(self) -> str:
        return f"positions={self.positions}" if self.positions else ""

    def _repr_html_(self) -> str:
        from posenc.encodings.in_html import in_html

        return in_html({place: list(getattr(self, place)) for place in PLACES})


def _in_place(place: str, given: Any) -> list[Any]:
    entries = list(given) if isinstance(given, Iterable) else [given]
    for entry in entries:
        if not isinstance(entry, PLACES[place]):
            own = _own_place(entry)
            told = f"it belongs to {own}" if own else f"it is no {PLACES[place].__name__}"
            raise TypeError(f"{type(entry).__name__} was given for {place}; {told}.")
    return entries


def _own_place(entry: Any) -> str | None:
    return next((name for name, kind in PLACES.items() if isinstance(entry, kind)), None)


def check_positional(given: Any) -> None:
    """Refuse what is no ``Positional``, above all an encoding by itself."""
    if not isinstance(given, Positional):
        name = given.__name__ if isinstance(given, type) else type(given).__name__
        own = _own_place(given)
        told = f"pass Positional({own}=...)" if own else "it must be a Positional"
        raise TypeError(f"positional is {name}; {told}.")


def check_company(
    queries_keys: Iterable[QueryKeyEncoding],
    scores: Iterable[ScoreEncoding],
    *,
    rotated_before: bool = True,
) -> None:
    """Refuse encodings beside which one of these would not mean what it says."""
    rotations = tuple(queries_keys)
    for index, encoding in enumerate(scores):
        if index and encoding.makes_anew:
            name = type(encoding).__name__
            raise ValueError(f"{name} computes scores anew; it must be the first of scores.")
        encoding.check_beside(rotations, rotated_before=rotated_before)
