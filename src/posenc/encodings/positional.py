"""Which encodings a model uses, in all three places, and what changes its positions before."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.encodings.base import (
    PositionRemapping,
    QueryKeyEncoding,
    ScoreEncoding,
    TokenEncoding,
)
from posenc.encodings.remapping.remapped import PairRemapping
from posenc.positions import Coordinates, Positions, checked

PLACES = {
    "tokens": TokenEncoding,
    "queries_keys": QueryKeyEncoding,
    "scores": ScoreEncoding,
    "positions": PositionRemapping,
}

NO_ROW = (type, Tensor, str, bytes, bytearray, Mapping)
"""What Python may iterate, though it is no row of encodings."""


class Positional(nn.Module):
    """The encodings of a model, place by place; those of one place apply in the order given.

    ``Positional()`` holds none at all (NoPE, Kazemnejad et al. 2023, arXiv:2305.19466). A single
    encoding may stand for a tuple of one. What it holds is settled when it is built; build another
    for other encodings.

    Args:
        tokens: Encodings added to the token embeddings.
        queries_keys: Encodings of queries and keys inside attention.
        scores: Encodings of the attention scores.
        positions: Changes of the positions themselves, before any encoding sees them.

    Attributes:
        positions: These, as a tuple; the others are lists of modules.

    Raises:
        AttributeError: An attribute is assigned anew.
        TypeError: An encoding is given for a place where it does not act.
        ValueError: One of scores does not fit those beside it, or what came before it is lost.

    Example:
        >>> from posenc import PoSE, Sinusoidal
        >>> positional = Positional(Sinusoidal(16), positions=PoSE(longest=4096))
        >>> positional
        Positional(
          positions=(PoSE(longest=4096, chunks=2),)
          (tokens): ModuleList(
            (0): Sinusoidal(16)
          )
          (queries_keys): ModuleList()
          (scores): ModuleList()
        )
    """

    tokens: nn.ModuleList
    queries_keys: nn.ModuleList
    scores: nn.ModuleList
    positions: tuple[PositionRemapping, ...]

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
        self.positions = tuple(_in_place("positions", positions))
        check_company(self.queries_keys, self.scores)  # type: ignore[arg-type]

    def check_company(self) -> None:
        """Refuse what the constructor refuses, of encodings that were exchanged since.

        Raises:
            TypeError: Something is no encoding of its place.
            ValueError: An encoding stands where it, or another, would not mean what it says.
        """
        for name in ("tokens", "queries_keys", "scores"):
            _in_place(name, tuple(getattr(self, name)))
        check_company(self.queries_keys, self.scores)  # type: ignore[arg-type]

    @property
    def remaps(self) -> bool:
        """Whether ``remapped`` changes positions, in training or evaluation as this module is."""
        return any(self.training or not each.training_only for each in self.positions)

    def remapped(
        self,
        positions: Int64[Tensor, "*batch seq"] | Positions,
        *,
        generator: torch.Generator | None = None,
    ) -> Int64[Tensor, "*batch seq"] | Coordinates:
        """Where the tokens are taken to stand: all changes of positions, in order.

        Those that act in training only are left out in evaluation (``.eval()``). Each call draws
        anew, so call it once for a row of tokens, and hand the result to queries and keys alike.

        Args:
            positions: ``[seq]`` for all rows alike, or ``[batch, seq]``.
            generator: Draws what is random; torch's own if not given.

        Raises:
            TypeError: Positions are not integers, or reals where a change takes none.
            ValueError: They are points of a grid, or do not fit a change.

        Example:
            >>> from posenc import SHAPE
            >>> positional = Positional(positions=SHAPE(1000)).eval()
            >>> positional.remapped(range(3))
            tensor([0, 1, 2])
        """
        if not self.remaps:
            return checked(positions, reals=True)
        positions = checked(positions, reals=True)
        if self.positions and positions.ndim > 2:
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}, as points of a grid; "
                f"{', '.join(type(each).__name__ for each in self.positions)} takes [seq] or "
                f"[batch, seq]. Leave it out where positions have coordinates."
            )
        for remapping in self.positions:
            if self.training or not remapping.training_only:
                # One that takes no reals says so.
                positions = remapping(positions, generator=generator)  # type: ignore[arg-type]
        return positions

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PLACES and hasattr(self, name):
            raise AttributeError(
                f"{name} of a Positional is settled when it is built. Build another, as "
                f"Positional({name}=...)."
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in PLACES:
            raise AttributeError(f"{name} of a Positional cannot be deleted; leave it empty.")
        super().__delattr__(name)

    def extra_repr(self) -> str:
        """Changes of positions, which are no modules."""
        return f"positions={self.positions}" if self.positions else ""


def _in_place(place: str, given: object) -> list:
    interface = PLACES[place]
    if isinstance(given, nn.Module | PositionRemapping) and not isinstance(given, nn.ModuleList):
        given = [given]
    if isinstance(given, NO_ROW) or not isinstance(given, Iterable):
        raise TypeError(
            f"{place} is {given!r}; it takes an encoding, or several in a tuple. "
            f"Leave it out for none."
        )
    entries = list(given)
    for entry in entries:
        if not isinstance(entry, interface):
            raise TypeError(
                f"{type(entry).__name__} was given for {place}, which takes "
                f"{interface.__name__}. {_advice(entry, interface)}"
            )
    return entries


def check_company(
    queries_keys: Iterable[QueryKeyEncoding],
    scores: Iterable[ScoreEncoding],
    *,
    rotated_before: bool = True,
) -> None:
    """Refuse encodings beside which one of these would not mean what it says.

    Args:
        queries_keys: All that change queries and keys.
        scores: All that change scores, in order.
        rotated_before: Whether queries and keys may come rotated, when none stands there.

    Raises:
        ValueError: By an encoding of scores; or one that computes them anew stands behind another.
    """
    rotations, first = tuple(queries_keys), None
    for encoding in scores:
        if first is not None and encoding.makes_anew:
            raise ValueError(
                f"{type(encoding).__name__} computes scores anew, by which what "
                f"{type(first).__name__} made of them is lost. Pass it first in scores=."
            )
        encoding.check_beside(rotations, rotated_before=rotated_before)
        first = first or encoding


def _advice(entry: object, interface: type) -> str:
    """Where ``entry`` belongs."""
    for name, other in PLACES.items():
        if isinstance(entry, other):
            return f"Pass it as Positional({name}=...)."
    if isinstance(entry, PairRemapping):
        return "It depends on the pair: pass scores=RemappedRotary(heads, rotary, remapping)."
    if isinstance(entry, type):
        return f"It is a class; pass {entry.__name__}(...)."
    return f"Implement {interface.__name__} from posenc.encodings.base."
