"""YaRN: slow frequencies interpolated, fast ones kept, and attention made sharper."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import ceil, floor, log, pi

from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_flag, check_number, check_positive_number, check_whole
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.ntk import check_falling, pair_of
from posenc.frequencies.powers import Geometric, geometric_of, writer
from posenc.frequencies.schedule import (
    PRECISION,
    Number,
    Rescaled,
    Schedule,
    as_float32,
    check_extension,
    exact,
)


@dataclass(frozen=True)
class YaRN(Rescaled):
    """ω_i · (1 − r_i · (1 − 1/s)) with a ramp r_i from 0 at fast to 1 at slow frequencies.

    r_i = clamp((i − low) / (high − low), 0, 1),   i(n) = d · ln(L0 / 2πn) / (2 ln b)

    where low = i(``beta_fast``) and high = i(``beta_slow``) are the pairs that turn so many times
    in the trained length L0, brought within 0 … d − 1 as in the authors' code. Cosines and sines
    are multiplied with m(1), where m(c) = 0.1·c·ln s + 1. DeepSeek's form has m(``mscale``) /
    m(``mscale_all_dim``) there, and multiplies the softmax scale with m(``mscale_all_dim``)².

    This is the ramp of the authors' code and of all public code, linear in the index of the pair.
    The paper states another (equations 17 to 20): linear in the turns L0 · ω_i / 2π themselves,
    from 1 to 32 of them. Between the borders its frequencies are lower, by more than two thirds
    with the numbers of gpt-oss. It is ``Llama3(of, s, low=1, high=32, trained_length=L0)``, but for
    the factor m(1).

    Args:
        of: The schedule to rescale, of width d and base b.
        factor: s; 1 changes nothing, bit for bit.
        trained_length: L0, in tokens.
        beta_fast: Turns from which on a pair is left alone.
        beta_slow: Turns up to which a pair is interpolated in full. Kimi K2 gives 1 for both, and
            its ramp is a step from one pair to the next.
        truncate: Whether low and high are rounded outwards to whole pairs; gpt-oss does not.
        mscale: c of the numerator, as DeepSeek gives it; 0 counts as absent, as in transformers.
        mscale_all_dim: c of the denominator and of the softmax scale, likewise.
        attention: The attention factor, in place of the one that follows from s.

    Reference:
        bloc97 & others 2023, github.com/jquesnelle/yarn; Peng et al. 2023, "YaRN", sections 3.2
        (the ramp) and 3.4 (the factor m) (arXiv:2309.00071); DeepSeek-AI 2024, "DeepSeek-V2",
        section 3.1.4 (arXiv:2405.04434).

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
        check_falling(self.of)
        check_extension(self.factor)
        check_whole(trained_length=self.trained_length)
        check_positive_number(beta_fast=self.beta_fast, beta_slow=self.beta_slow)
        check_flag(truncate=self.truncate)
        scales = {"mscale": self.mscale, "mscale_all_dim": self.mscale_all_dim}
        given = scales | {"attention": self.attention}
        check_number(0.0, **{name: each for name, each in given.items() if each is not None})
        with localcontext(PRECISION):
            low, high = self._ramp()
            if self.beta_slow > self.beta_fast or low > high:
                raise ValueError(f"No ramp leads from {self.beta_fast} to {self.beta_slow} turns.")
            self._settle(
                attention_factor=self._attention_factor(),
                softmax_factor=float(self._sharpness(self.mscale_all_dim or 0.0) ** 2),
            )

    def _attention_factor(self) -> float:
        if self.attention is not None:
            return float(self.attention)
        if self.mscale and self.mscale_all_dim:
            return float(self._sharpness(self.mscale) / self._sharpness(self.mscale_all_dim))
        return float(self._sharpness(1.0))

    def _sharpness(self, coefficient: float) -> Decimal:
        """m(c) = 0.1·c·ln s + 1."""
        return Decimal("0.1") * exact(coefficient) * exact(self.factor).ln() + 1

    def radians(self) -> tuple[Decimal, ...]:
        slowing = 1 - 1 / exact(self.factor)
        low, high = self._ramp()
        if low == high:  # a step; as steep as the authors' code makes it
            high += Decimal("0.001")
        ramp = (
            min(max((i - low) / (high - low), Decimal(0)), Decimal(1)) for i in range(len(self))
        )
        return tuple(w * (1 - r * slowing) for w, r in zip(self.of.radians(), ramp, strict=True))

    def _ramp(self) -> tuple[Decimal, Decimal]:
        """low and high, within the pairs."""
        borders = self.beta_fast, self.beta_slow
        low, high = (pair_of(turns, self.of, self.trained_length) for turns in borders)
        if self.truncate:
            low, high = Decimal(floor(low)), Decimal(ceil(high))
        return max(low, Decimal(0)), min(high, Decimal(self.of.dim - 1))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as transformers' float32 code has them."""
        base, dim = float(self.of.base), self.of.dim
        periods = base ** (as_float32(range(0, dim, 2)) / dim)
        kept = 1 - self.float32_ramp()
        return 1.0 / (float(self.factor) * periods) * (1 - kept) + 1.0 / periods * kept

    def float32_ramp(self) -> Float32[Tensor, "frequencies"]:
        """The ramp r_i as public float32 code has it."""
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
        return ((as_float32(range(len(self))) - low) / (high - low)).clamp(0, 1)


def _read(rope: Rope, _length: int | None) -> Schedule:
    trained, given = rope.length("trained_length"), rope.values
    return YaRN(
        geometric_of(rope),
        rope.factor or 1.0,
        trained,
        beta_fast=given.get("beta_fast") or 32.0,
        beta_slow=given.get("beta_slow") or 1.0,
        truncate=given.get("truncate", True),
        mscale=given.get("mscale"),
        mscale_all_dim=given.get("mscale_all_dim"),
        attention=given.get("attention_factor"),
    )


SAME = "beta_fast", "beta_slow", "truncate", "mscale", "mscale_all_dim"
FIELDS = {"factor": "factor", "original_max_position_embeddings": "trained_length"}
FIELDS |= {name: name for name in SAME} | {"attention_factor": "attention"}

ROPE_TYPE = RopeType(
    "yarn",
    _read,
    writer(YaRN, FIELDS),
    keys=(
        *FIELDS,
        "finetuned",  # what the authors' own files say of the weights
        "max_position_embeddings",  # Ministral repeats it here
        "llama_4_scaling_beta",  # of Ministral's query temperature, which is no rotation
    ),
    switches=("truncate", "finetuned"),
    implied_factor=True,
    keeps_trained_length=True,
)
