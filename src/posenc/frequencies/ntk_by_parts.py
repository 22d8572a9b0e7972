"""NTK by parts: fast frequencies kept, slow ones interpolated, NTK's between them."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import ceil, floor

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.ntk import NTK, check_geometric
from posenc.frequencies.schedule import (
    PRECISION,
    TWO_PI,
    Number,
    Schedule,
    check_extension,
    check_length,
    check_positive,
    exact,
    listed,
)

Turns = tuple[Number, Number]


@dataclass(frozen=True)
class NTKByParts(Schedule):
    """Two ramps, each between two numbers of turns in the trained length L0, over the pairs.

    ω_i → k_i·ω_i + (1 − k_i)·(m_i·NTK_i + (1 − m_i)·ω_i/s)

    m_i falls from 1 to 0 over the pairs i(β_0) … i(β_1), and k_i over i(γ_0) … i(γ_1), with
    i(n) = d · ln(L0 / 2πn) / (2 ln b), rounded outwards to whole pairs. This is the form of YaRN
    before its paper, and what image generators call YaRN. Cosines and sines are multiplied with
    0.1·ln s + 1.

    Borders are brought within 0 … d/2, as in DyPE's code. The older code of YaRN brings them within
    0 … d − 1: a ramp that reaches past the last pair, d/2 − 1, is less steep there.

    A ramp that would begin past the last pair leaves all pairs on its fast side, and one that would
    end before the first leaves all on its slow side. (Public code takes some of these the other way
    round: where its borders change places, its ramp turns over.)

    Args:
        of: The schedule to rescale, of width d and base b.
        factor: s; 1 changes nothing.
        trained_length: L0.
        beta: β_0 and β_1, in turns.
        gamma: γ_0 and γ_1, in turns.

    Raises:
        TypeError: ``of`` has no base.
        ValueError: A number is not positive and finite, or of two turns the second is not the
            smaller; or ``factor`` is below 1.

    Reference:
        ``LlamaPartNTKScaledRotaryEmbedding`` in jquesnelle/yarn; ``get_1d_rotary_pos_embed`` with
        ``yarn=True`` in guyyariv/DyPE.

    Example:
        >>> by_parts = NTKByParts(Geometric(56), factor=4.0, trained_length=64)
        >>> [round(slow / plain, 2) for slow, plain in
        ...  list(zip(by_parts.wavelengths(), Geometric(56).wavelengths()))[:10:2]]
        [1.0, 1.04, 1.17, 1.36, 4.0]
    """

    of: Geometric
    factor: Number
    trained_length: int
    beta: Turns = (1.25, 0.75)
    gamma: Turns = (16, 2)

    def __post_init__(self):
        check_geometric(self, self.of)
        check_extension(self, self.factor)
        check_length(self, self.trained_length)
        NTK(self.of, self.factor)  # refuses a width that it divides by 0 with
        for name in ("beta", "gamma"):
            turns = listed(self, name, getattr(self, name))
            check_positive(self, **{f"{name}[{i}]": each for i, each in enumerate(turns)})
            if len(turns) != 2 or turns[1] >= turns[0]:
                raise ValueError(
                    f"NTKByParts: {name} is {turns}; it must be two numbers of turns, the second "
                    f"the smaller, as 16 and 2."
                )
        if self.of.base <= 1:
            raise ValueError(
                f"NTKByParts: the base is {self.of.base}; frequencies do not fall, so there is no "
                f"ramp. Give a base above 1, as 10000."
            )
        with localcontext(PRECISION):
            factor = float(Decimal("0.1") * exact(self.factor).ln() + 1)
        self._settle(attention_factor=factor)

    def __len__(self) -> int:
        return len(self.of)

    def radians(self) -> tuple[Decimal, ...]:
        plain, ntk = self.of.radians(), NTK(self.of, self.factor).radians()
        linear = tuple(w / exact(self.factor) for w in plain)
        middle = self._mixed(ntk, linear, self.beta)
        return self._mixed(plain, middle, self.gamma)

    def _mixed(
        self, fast: tuple[Decimal, ...], slow: tuple[Decimal, ...], turns: Turns
    ) -> tuple[Decimal, ...]:
        low, high = self._border(turns[0], floor), self._border(turns[1], ceil)
        return tuple(
            f + (s - f) * _ramp(i, low, high, len(fast))
            for i, (f, s) in enumerate(zip(fast, slow, strict=True))
        )

    def _border(self, turns: Number, outwards) -> int:
        """The pair that turns so many times in the trained length."""
        ratio = exact(self.trained_length) / (exact(turns) * TWO_PI)
        return outwards(self.of.dim * ratio.ln() / (2 * exact(self.of.base).ln()))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The exact frequencies, rounded; public code computes them in float64."""
        with localcontext(PRECISION):
            return torch.tensor([float(w) for w in self.radians()], dtype=torch.float32)


def _ramp(pair: int, low: int, high: int, pairs: int) -> Decimal:
    """From 0 at ``low`` to 1 at ``high``, both brought within the pairs."""
    if low > pairs or high < 0:
        return Decimal(high < 0)
    low, high = max(low, 0), min(high, pairs)
    if low == high:
        return Decimal(pair > low)
    return min(max(Decimal(pair - low) / (high - low), Decimal(0)), Decimal(1))
