"""Powers of a base with rational exponents: the frequencies of every classic method."""

from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import lru_cache
from math import inf, log
from typing import TYPE_CHECKING

from posenc.frequencies.schedule import Schedule, exact, is_no_number, listed

if TYPE_CHECKING:
    from jaxtyping import Float32
    from torch import Tensor


@dataclass(frozen=True)
class Powers(Schedule):
    """ω_i = base^(−numerators[i] / denominator).

    The exponent is kept as a fraction, since the paper's 2i/d, fairseq's i/(d/2 − 1) and their
    kin differ in nothing else.

    Raises:
        ValueError: The base is not positive and finite, or the denominator is 0.

    Example:
        >>> Powers(base=100.0, numerators=(0, 2), denominator=4).float32("float32")
        tensor([1.0000, 0.1000])
    """

    base: int | float | Fraction
    numerators: tuple[int, ...]
    denominator: int | float

    def __post_init__(self):
        if is_no_number(self.base) or not 0 < self.base < float("inf"):
            raise ValueError(
                f"base is {self.base!r}; it must be a positive and finite number, as 10000."
            )
        if is_no_number(self.denominator) or not -inf < self.denominator < inf:
            raise ValueError(f"denominator is {self.denominator!r}; it must be a finite number.")
        object.__setattr__(self, "numerators", listed(self, "numerators", self.numerators))
        if self.denominator == 0:
            raise ValueError("The exponents divide by 0: the width is too small for this schedule.")

    @property
    def exponents(self) -> tuple[Fraction, ...]:
        """The e_i of ω_i = base^(−e_i)."""
        return tuple(Fraction(n) / Fraction(self.denominator) for n in self.numerators)

    def radians(self) -> tuple[Decimal, ...]:
        base = self.base
        return _powers(
            Decimal(base) if isinstance(base, int | float) else exact(base),
            tuple((int(e.numerator), int(e.denominator)) for e in self.exponents),
            getcontext().prec,
        )

    def float32(self, form: str) -> "Float32[Tensor, 'frequencies']":
        """The two roundings in public use: the power, or the exponential of a logarithm."""
        import torch  # exact frequencies need none

        numerators = torch.tensor(self.numerators, dtype=torch.float32)
        denominator = float(self.denominator)
        if form == "float32-log":
            return torch.exp(numerators * (-log(self.base) / denominator))
        base = self.base if isinstance(self.base, int | float) else float(self.base)
        return 1.0 / (base ** (numerators / denominator))


@lru_cache(maxsize=64)
def _powers(
    base: Decimal, exponents: tuple[tuple[int, int], ...], digits: int
) -> tuple[Decimal, ...]:
    """base^(−numerator / denominator) to the digits of the context.

    Kept for the layers of a model, which ask for the same ones.
    """
    log_base = base.ln()
    return tuple(
        (-log_base * numerator / denominator).exp() if numerator else Decimal(1)
        for numerator, denominator in exponents
    )
