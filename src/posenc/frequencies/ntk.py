"""NTK-aware scaling: only the slow frequencies slow down. By parts: with fast ones kept."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import ceil, floor
from typing import Any

from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_positive_number, check_whole
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.powers import Geometric, geometric_of
from posenc.frequencies.schedule import (
    PRECISION,
    TWO_PI,
    Number,
    Rescaled,
    Schedule,
    check_extension,
    exact,
    rational,
)

Turns = tuple[Number, Number]


@dataclass(frozen=True)
class NTK(Rescaled):
    """ω_i with base b·s^(d/(d−2)), which is b^(−2i/d) · s^(−2i/(d−2)).

    The fastest frequency stays, and the slowest is divided by s exactly.

    Args:
        of: The schedule whose base b grows, of width d.
        factor: s; 1 changes nothing, bit for bit.

    Reference:
        bloc97 2023, "NTK-Aware Scaled RoPE"; Peng et al. 2023, "YaRN", equation 16
        (arXiv:2309.00071), where κ stands for s.

    Example:
        >>> plain, scaled = Geometric(4, base=100.0), NTK(Geometric(4, base=100.0), factor=2.0)
        >>> [after / before for before, after in zip(plain.wavelengths(), scaled.wavelengths())]
        [1.0, 2.0]
    """

    of: Geometric
    factor: Number

    def __post_init__(self):
        check_geometric(self.of)
        check_extension(self.factor)
        if self.of.dim <= 2:
            raise ValueError(f"NTK divides by dim − 2; of has dim {self.of.dim}.")

    def radians(self) -> tuple[Decimal, ...]:
        log_factor, width = exact(self.factor).ln(), self.of.dim - 2
        return tuple(
            w * (-log_factor * 2 * i / width).exp() if log_factor else w
            for i, w in enumerate(self.of.radians())
        )

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        grown = float(self.of.base) * float(self.factor) ** (self.of.dim / (self.of.dim - 2))
        return Geometric(self.of.dim, grown).float32(form)


@dataclass(frozen=True)
class DynamicNTK:
    """NTK scaling by a factor that grows with the length; ``at(length)`` is the schedule.

    s(L) = s·L/L0 − (s − 1) for lengths L above L0, and 1 below

    It depends on the length that the caller states alone. With another length all keys turn
    otherwise, those in a cache too (``rerotate``).

    Args:
        of: The schedule whose base grows.
        factor: s.
        trained_length: L0.

    Reference:
        emozilla 2023, "Dynamically Scaled RoPE"; ``dynamic`` in transformers.

    Example:
        >>> dynamic = DynamicNTK(Geometric(8), factor=2.0, trained_length=4096)
        >>> dynamic.at(8192)
        NTK(of=Geometric(dim=8, base=10000.0), factor=Fraction(3, 1))
        >>> dynamic.at(1000).turns() == Geometric(8).turns()
        True
    """

    of: Geometric
    factor: Number
    trained_length: int

    def __post_init__(self):
        check_geometric(self.of)
        check_extension(self.factor)
        check_whole(trained_length=self.trained_length)

    def at(self, length: int) -> NTK:
        """The schedule for sequences of ``length`` tokens."""
        check_whole(length=length)
        factor, length = rational(self.factor), max(int(length), int(self.trained_length))
        return NTK(self.of, factor * length / int(self.trained_length) - (factor - 1))


@dataclass(frozen=True)
class NTKByParts(Rescaled):
    """Two ramps, each between two numbers of turns in the trained length L0, over the pairs.

    ω_i → k_i·ω_i + (1 − k_i)·(m_i·NTK_i + (1 − m_i)·ω_i/s)

    m_i falls from 1 to 0 over the pairs i(β_0) … i(β_1), and k_i over i(γ_0) … i(γ_1), with
    i(n) = d · ln(L0 / 2πn) / (2 ln b), rounded outwards to whole pairs. This is the form of YaRN
    before its paper, and what image generators call YaRN. Cosines and sines are multiplied with
    0.1·ln s + 1.

    Borders are brought within 0 … d/2, as in DyPE's code; the older code of YaRN brings them within
    0 … d − 1, where a ramp past the last pair is less steep. Pairs before a ramp are on its fast
    side, and those behind it on its slow side; in public code some of these ramps turn over.

    Args:
        of: The schedule to rescale, of width d and base b.
        factor: s; 1 changes nothing.
        trained_length: L0.
        beta: β_0 and β_1, in turns.
        gamma: γ_0 and γ_1, in turns.

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
        check_falling(self.of)
        NTK(self.of, self.factor)  # checks both
        check_whole(trained_length=self.trained_length)
        for name in ("beta", "gamma"):
            fast, slow = getattr(self, name)
            check_positive_number(**{f"{name}[0]": fast, f"{name}[1]": slow})
        with localcontext(PRECISION):
            self._settle(attention_factor=float(Decimal("0.1") * exact(self.factor).ln() + 1))

    def radians(self) -> tuple[Decimal, ...]:
        plain, ntk = self.of.radians(), NTK(self.of, self.factor).radians()
        linear = tuple(w / exact(self.factor) for w in plain)
        return self._mixed(plain, self._mixed(ntk, linear, self.beta), self.gamma)

    def _mixed(
        self, fast: tuple[Decimal, ...], slow: tuple[Decimal, ...], turns: Turns
    ) -> tuple[Decimal, ...]:
        low, high = self._border(turns[0], floor), self._border(turns[1], ceil)
        return tuple(
            f + (s - f) * _ramp(i, low, high, len(fast))
            for i, (f, s) in enumerate(zip(fast, slow, strict=True))
        )

    def _border(self, turns: Number, outwards: Callable[[Decimal], int]) -> int:
        return outwards(pair_of(turns, self.of, self.trained_length))


def pair_of(turns: Number, of: Geometric, trained_length: int) -> Decimal:
    """The pair, as a real number, that turns so many times in the trained length."""
    ratio = exact(trained_length) / (exact(turns) * TWO_PI)
    return of.dim * ratio.ln() / (2 * exact(of.base).ln())


def _ramp(pair: int, low: int, high: int, pairs: int) -> Decimal:
    """From 0 at ``low`` to 1 at ``high``, both brought within the pairs."""
    if low > pairs or high < 0:
        return Decimal(high < 0)
    low, high = max(low, 0), min(high, pairs)
    if low == high:
        return Decimal(pair > low)
    return min(max(Decimal(pair - low) / (high - low), Decimal(0)), Decimal(1))


def check_geometric(of: Geometric) -> None:
    """Refuse a schedule that has no width and base to compute with."""
    if not isinstance(of, Geometric):
        raise TypeError(f"of is {of!r}; its width and base change, so it must be Geometric.")


def check_falling(of: Geometric) -> None:
    """Refuse one whose frequencies do not fall, over which there is no ramp."""
    check_geometric(of)
    if of.base <= 1:
        raise ValueError(f"base is {of.base}; frequencies must fall, so it must be above 1.")


def _read_dynamic(rope: Rope, length: int | None) -> Schedule:
    trained = rope.length("longest")
    schedule = DynamicNTK(geometric_of(rope), rope.needed("factor"), trained)
    return schedule.at(length or trained)


DYNAMIC_ROPE_TYPE = RopeType("dynamic", _read_dynamic, keys=("factor",))


def _is_hunyuans(named: str, values: Any, family: str) -> bool:
    """HunYuan's fixed stretch goes by the name of the dynamic one; other models read no alpha."""
    return named == "dynamic" and bool(values.get("alpha")) and family.startswith("hunyuan")


ROPE_TYPE = RopeType(
    "ntk_alpha",
    lambda rope, _length: NTK(geometric_of(rope), rope.needed("alpha")),
    keys=("factor", "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
    factor_key="alpha",
    claims=_is_hunyuans,
    in_transformers=False,
)
