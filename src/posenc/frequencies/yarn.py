"""YaRN: slow frequencies interpolated, fast ones kept, and attention made sharper."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import ceil, floor, log, pi

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.ntk import check_geometric
from posenc.frequencies.schedule import (
    PRECISION,
    TWO_PI,
    Number,
    Schedule,
    check_positive,
    exact,
)


@dataclass(frozen=True)
class YaRN(Schedule):
    """ω_i · (1 − r_i · (1 − 1/s)) with a ramp r_i from 0 at fast to 1 at slow frequencies.

    r_i = clamp((i − low) / (high − low), 0, 1),   i(n) = d · ln(L0 / 2πn) / (2 ln b)

    where low = i(``beta_fast``) and high = i(``beta_slow``) are the pairs that turn so many times
    in the trained length L0. Cosines and sines are multiplied with m(1), where
    m(c) = 0.1·c·ln s + 1. DeepSeek's form has m(``mscale``) / m(``mscale_all_dim``) there, and
    multiplies the softmax scale with m(``mscale_all_dim``)².

    Args:
        of: The schedule to rescale, of width d and base b.
        factor: s; 1 changes nothing, bit for bit.
        trained_length: L0, in tokens.
        beta_fast: Turns from which on a pair is left alone.
        beta_slow: Turns up to which a pair is interpolated in full.
        truncate: Whether low and high are rounded outwards to whole pairs; gpt-oss does not.
        mscale: c of the numerator, as DeepSeek gives it.
        mscale_all_dim: c of the denominator and of the softmax scale.
        attention: The attention factor, in place of the one that follows from s.

    Raises:
        TypeError: ``of`` has no base.
        ValueError: A number is not positive and finite, or ``beta_slow`` exceeds ``beta_fast``.

    Reference:
        Peng et al. 2023, "YaRN", equations 17 to 22 (arXiv:2309.00071); DeepSeek-AI 2024,
        "DeepSeek-V2", section 3.1.4 (arXiv:2405.04434).

    Example:
        >>> yarn = YaRN(Geometric(128), factor=16.0, trained_length=4096)
        >>> yarn.attention_factor
        1.2772588722239782
        >>> [round(yarn.wavelengths()[i] / yarn.of.wavelengths()[i], 2) for i in (0, 30, 63)]
        [1.0, 1.56, 16.0]
    """

    of: Geometric
    factor: Number
    trained_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention: float | None = None

    def __post_init__(self):
        check_geometric(self, self.of)
        check_positive(
            self,
            factor=self.factor,
            trained_length=self.trained_length,
            beta_fast=self.beta_fast,
            beta_slow=self.beta_slow,
        )
        if self.beta_slow > self.beta_fast:
            raise ValueError(
                f"YaRN: beta_slow is {self.beta_slow} and beta_fast {self.beta_fast} turns; the "
                f"slow one must be the smaller. Exchange them."
            )

    @property
    def attention_factor(self) -> float:
        if self.attention is not None:
            return self.attention
        # As transformers reads configurations: a ratio needs both, and 0 counts as absent.
        if self.mscale and self.mscale_all_dim:
            with localcontext(PRECISION):
                return float(self._sharpness(self.mscale) / self._sharpness(self.mscale_all_dim))
        return float(self._sharpness(1.0))

    @property
    def softmax_factor(self) -> float:
        with localcontext(PRECISION):
            return float(self._sharpness(self.mscale_all_dim or 0.0) ** 2)

    def _sharpness(self, coefficient: float) -> Decimal:
        """m(c) = 0.1·c·ln s + 1, and 1 where s is no extension."""
        with localcontext(PRECISION):
            if self.factor <= 1:
                return Decimal(1)
            return Decimal("0.1") * exact(coefficient) * exact(self.factor).ln() + 1

    def radians(self) -> tuple[Decimal, ...]:
        slowing = 1 - 1 / exact(self.factor)
        low, high = self._border(self.beta_fast), self._border(self.beta_slow)
        if self.truncate:
            low, high = Decimal(floor(low)), Decimal(ceil(high))
        low, high = max(low, Decimal(0)), min(high, Decimal(self.of.dim - 1))
        if low == high:  # a step; as steep as the authors' code makes it
            high += Decimal("0.001")
        ramp = (
            min(max((i - low) / (high - low), Decimal(0)), Decimal(1)) for i in range(len(self))
        )
        return tuple(w * (1 - r * slowing) for w, r in zip(self.of.radians(), ramp, strict=True))

    def __len__(self) -> int:
        return len(self.of)

    def _border(self, turns: float) -> Decimal:
        """The pair, as a real number, that turns so many times in the trained length."""
        ratio = exact(self.trained_length) / (exact(turns) * TWO_PI)
        return self.of.dim * ratio.ln() / (2 * exact(self.of.base).ln())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as transformers' float32 code has them."""
        base, dim = self.of.base, self.of.dim
        low, high = (
            dim * log(self.trained_length / (turns * 2 * pi)) / (2 * log(base))
            for turns in (self.beta_fast, self.beta_slow)
        )
        if self.truncate:
            low, high = floor(low), ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        if low == high:
            high += 0.001
        ramp = ((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
        periods = base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
        kept = 1 - ramp
        return 1.0 / (float(self.factor) * periods) * (1 - kept) + 1.0 / periods * kept
