"""Positions that are drawn for each row: SHAPE, PoSE, randomized positions and CAPE."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import PositionRemapping
from posenc.encodings.shapes import WholeDistance, WholeRow
from posenc.guards import may_look, where_float64
from posenc.positions import Coordinates, checked, consecutive, in_float64

Generator = torch.Generator | None
Moved = Int64[Tensor, "*batch seq"]


def checked_row(positions: WholeRow, longest: int, *, name: str) -> Moved:
    """Positions within 0 … seq − 1, of at most ``longest`` tokens."""
    positions = checked(positions)
    seq = positions.shape[-1]
    if seq > longest:
        raise ValueError(f"A row has {seq} tokens; {name}(longest={longest}) has no room for them.")
    if positions.is_cpu and positions.numel() and may_look(positions):
        first, last = (int(end) for end in positions.aminmax())
        if first < 0 or last >= seq:
            raise ValueError(f"positions are {first} to {last}; {name} takes 0 … {seq - 1}.")
    return positions


def share(shape: torch.Size, device: torch.device, generator: Generator) -> Float64[Tensor, "..."]:
    """Numbers from U(0, 1), of the generator or of torch's own, where there is float64."""
    where = where_float64(device)
    if generator is None:  # which a graph of any batch does not take as an argument
        return torch.rand(shape, device=where, dtype=torch.float64)
    drawn = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return drawn.to(where)


def uniform(most: Tensor, generator: Generator = None) -> Tensor:
    """A whole number from 0 to ``most`` for each entry, all equally likely."""
    drawn = share(most.shape, most.device, generator)
    # A share just below 1 may round up to the bound once multiplied.
    return (drawn * (most + 1).to(drawn.device)).long().to(most.device).minimum(most)


@dataclass(frozen=True)
class SHAPE(PositionRemapping):
    """p → p + k,  k ~ U{0 … most}, in training only

    One shift is drawn for each row of ``positions``; ``[seq]`` draws one for all. The paper's shift
    reaches K, as here; the code draws from 0 … K − 1, which is ``SHAPE(K - 1)``, and begins every
    row at K in evaluation.

    Args:
        most: K, the largest shift.

    Reference:
        Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers",
        section 3 (arXiv:2109.05644); ``onmt/modules/embeddings.py`` of butsugiri/shape.

    Example:
        >>> from posenc.positions import consecutive
        >>> SHAPE(500)(consecutive(4)).diff()
        tensor([1, 1, 1])
    """

    training_only: ClassVar[bool] = True

    most: int

    def __post_init__(self):
        check_whole(0, most=self.most)

    def __call__(self, positions: WholeRow, *, generator: Generator = None) -> Moved:
        positions = checked(positions)
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        return positions + uniform(rows + self.most, generator)


@dataclass(frozen=True)
class PoSE(PositionRemapping):
    """Tokens from each of some random cuts on stand further out by a random skip, in training.

    p → p + u_i in chunk i,  u_0 = 0,  u_i ~ U{u_{i−1} … longest − seq}

    With two chunks the cut is that of the authors' code, U{1 … ⌈seq / 2⌉}; with more, which the
    code does not have, all divisions are equally likely. Cuts and skips are drawn for each row of
    ``positions``; ``[seq]`` draws them for all.

    Args:
        longest: The number of positions of the context to be reached.
        chunks: Number of chunks of a row; 2 in the paper's experiments.

    Reference:
        Zhu et al. 2023, "PoSE: Efficient Context Window Extension of LLMs via Positional Skip-wise
        Training", equations 3 and 4 (arXiv:2309.10400).

    Example:
        >>> from posenc.positions import consecutive
        >>> PoSE(100)(consecutive(6), generator=torch.Generator().manual_seed(0)).diff() >= 1
        tensor([True, True, True, True, True])
    """

    training_only: ClassVar[bool] = True

    longest: int
    chunks: int = 2

    def __post_init__(self):
        check_whole(longest=self.longest)
        check_whole(2, chunks=self.chunks)

    def __call__(self, positions: WholeRow, *, generator: Generator = None) -> Moved:
        """New positions for tokens at 0 … seq − 1; equal ones (padding) stay equal."""
        positions = checked_row(positions, self.longest, name="PoSE")
        seq, skipped = positions.shape[-1], torch.zeros_like(positions)
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        room = rows + self.longest - seq
        for cut in self._cuts(rows, seq, generator).unbind(-1):
            skip = uniform(room, generator)
            skipped, room = skipped + skip * (positions >= cut.unsqueeze(-1)), room - skip
        return positions + skipped

    def _cuts(self, rows: Tensor, seq: int, generator: Generator) -> Tensor:
        """The first token of each chunk but the first."""
        if self.chunks == 2:
            return 1 + uniform(rows + max((seq + 1) // 2 - 1, 0), generator)
        keys = share(torch.Size((*rows.shape[:-1], max(seq - 1, 0))), rows.device, generator)
        return 1 + keys.argsort(-1)[..., : self.chunks - 1].sort(-1).values.to(rows.device)


@dataclass(frozen=True)
class Randomized(PositionRemapping):
    """The p-th token stands at the p-th smallest of a sample from 0 … longest − 1.

    The sample is uniform and without replacement. It is drawn in evaluation too, as the authors do,
    so a text cannot be decoded step by step. One is drawn for each row of ``positions``; ``[seq]``
    draws one for all, as the authors' code does. For biases of distance see ``distances``.

    Args:
        longest: L, the number of positions to draw from; larger than any length to come.

    Reference:
        Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of
        Transformers", section 3 (arXiv:2305.16843); ``models/positional_encodings.py`` of
        google-deepmind/randomized_positional_encodings.

    Example:
        >>> from posenc.positions import consecutive
        >>> drawn = Randomized(2048)(consecutive(6), generator=torch.Generator().manual_seed(0))
        >>> bool((drawn.diff() > 0).all()), bool((drawn < 2048).all())
        (True, True)
    """

    training_only: ClassVar[bool] = False

    longest: int

    def __post_init__(self):
        check_whole(longest=self.longest)

    def __call__(self, positions: WholeRow, *, generator: Generator = None) -> Moved:
        """New positions for tokens at 0 … seq − 1; equal ones (padding) stay equal."""
        positions = checked_row(positions, self.longest, name="Randomized")
        sample = self._sample(positions.shape, self.longest, positions.device, generator)
        return sample.gather(-1, positions)

    def distances(
        self, distance: WholeDistance, *, generator: Generator = None
    ) -> Int64[Tensor, "*shape"]:
        """Distance d > 0 → the d-th smallest of a sample from 1 … longest − 1; −d → its opposite.

        The authors' form for ALiBi and Transformer-XL: hand the profile of a bias at these
        distances to attention as its mask.
        """
        distance = checked(distance, "distance")
        reach = int(distance.abs().amax()) if distance.numel() else 0
        sample = self._sample(torch.Size((reach,)), self.longest - 1, distance.device, generator)
        sample = 1 + sample
        return torch.cat((-sample.flip(0), sample.new_zeros(1), sample))[distance + reach]

    @staticmethod
    def _sample(
        shape: torch.Size, below: int, device: torch.device, generator: Generator
    ) -> Tensor:
        """A sorted sample of 0 … below − 1 without replacement for each row."""
        # In float32 equal keys would favor the first of them.
        keys = share(torch.Size((*shape[:-1], below)), device, generator)
        return keys.argsort(-1)[..., : shape[-1]].sort(-1).values.to(device)


FINENESS = 2**20
"""Steps that each step of the given coordinates is cut into."""


@dataclass(frozen=True)
class CAPE(PositionRemapping):
    """p_i → λ · (p_i + Δ + ε_i), in training only, drawn anew at each call

    with a global shift Δ ~ U(−global_shift, global_shift) and a scale λ, ln λ ~ U(−ln scale, ln
    scale), one for each row, and a local shift ε_i ~ U(−local_shift, local_shift) of each token.
    Order stays up to a local shift of half the distance between tokens. In evaluation positions
    stay; the paper centers those in seconds on their mean before. Results are real coordinates, so
    encodings must take reals.

    Public implementations measure local shifts by the distance of neighboring tokens: where tokens
    stand 0.03 seconds apart, their 0.5 is ``local_shift=0.015`` here.

    Args:
        global_shift: Δmax, in units of the coordinates: 5 tokens for text in the paper, 60 seconds
            for speech.
        local_shift: εmax, likewise.
        scale: λmax, from 1 on.

    Reference:
        Likhomanenko et al. 2021, "CAPE: Encoding Relative Positions with Continuous Augmented
        Positional Embeddings", section 3.1 (arXiv:2106.03143).

    Example:
        >>> shifted = CAPE(global_shift=5, local_shift=0, scale=1)(range(3))
        >>> (shifted - shifted[:1]).tolist()
        [Fraction(0, 1), Fraction(1, 1), Fraction(2, 1)]
    """

    training_only: ClassVar[bool] = True

    global_shift: float = 5.0
    local_shift: float = 0.5
    scale: float = 1.03

    def __post_init__(self) -> None:
        check_number(0.0, global_shift=self.global_shift, local_shift=self.local_shift)
        check_number(1.0, scale=self.scale)

    def __call__(
        self, positions: WholeRow | Coordinates, *, generator: Generator = None
    ) -> Coordinates:
        """The coordinates where the tokens are taken to stand."""
        given = checked(positions, reals=True)
        if isinstance(given, Tensor):
            given = Coordinates(given)
        step = given.scale / FINENESS  # type: ignore[operator]  # of one axis
        steps = given.values * FINENESS
        for most, shape in (
            (self.global_shift, (*steps.shape[:-1], 1)),
            (self.local_shift, steps.shape),
        ):
            reach = torch.full(shape, int(Fraction(most) / step), device=steps.device)
            steps = steps + uniform(2 * reach, generator) - reach
        if self.scale > 1:
            shape = torch.Size((*steps.shape[:-1], 1))
            drawn = 2 * share(shape, steps.device, generator) - 1
            steps = (in_float64(steps) * (drawn * log(self.scale)).exp()).round().long()
            steps = steps.to(given.device)
        return Coordinates(steps, scale=step)
