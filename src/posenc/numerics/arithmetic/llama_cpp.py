"""llama.cpp: the angle of a pair is that of the pair before it, times one constant."""

import struct
from math import pi

import torch
from torch import Tensor

from posenc.frequencies import Geometric, Linear, Llama3
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile


class LlamaCpp(Profile):
    """``ggml_rope_cache_init`` on the CPU: θ₀ = p, θ_{i+1} = θ_i · base^(−2/d), each rounded.

    Llama 3's scaling comes as a tensor of divisors in the model's file, which the conversion
    writes; linear scaling as one factor of all angles. Its cosines are those of the C library,
    which may differ from torch's in the last bit.
    """

    name = "llama.cpp"
    source = "ggml/src/ggml-cpu/ops.cpp"
    version = "llama.cpp at 0049e3c"
    evidence = "read"
    said = (
        "angles in float32 by repeated multiplication from pair to pair; cosines, products and "
        "sums in float32, rounded once"
    )
    pairings = ("interleaved", "half")
    schedules = (Geometric, Linear, Llama3)

    def frequencies(self, schedule: Schedule) -> Tensor:
        """What each angle is divided by: the tensor ``rope_freqs`` of a model's file, or ones.

        Frequencies by themselves never exist in this code.
        """
        plain = _plain(schedule)
        if not isinstance(schedule, Llama3):
            return torch.ones(plain.dim // 2, dtype=torch.float32)
        low, high, length = float(schedule.low), float(schedule.high), schedule.trained_length
        factor = float(schedule.factor)
        wavelengths = 2 * pi / plain.float32("float32")
        if low == high:
            return torch.where(wavelengths > length / low, factor, 1.0)
        smooth = (length / wavelengths - low) / (high - low)
        between = 1 / ((1 - smooth) / factor + smooth)
        slow = torch.where(wavelengths > length / low, factor, between)
        return torch.where(wavelengths < length / high, 1.0, slow)

    def angles(self, positions: Tensor, frequencies: Tensor, schedule: Schedule) -> Tensor:
        """By repeated multiplication; ``frequencies`` are the divisors."""
        plain = _plain(schedule)
        step = _rounded(_rounded(float(plain.base)) ** _rounded(-2 / plain.dim))
        # A model's file has the factor in float32.
        scale = 1 / _rounded(float(schedule.factor)) if isinstance(schedule, Linear) else 1.0
        angle, made = positions.float(), []
        for divisor in frequencies.unbind():
            made.append(angle / divisor * _rounded(scale))
            angle = angle * step
        return torch.stack(made, dim=-1)


def _plain(schedule: Schedule) -> Geometric:
    plain = schedule.of if isinstance(schedule, Linear | Llama3) else schedule
    assert isinstance(plain, Geometric)
    return plain


def _rounded(number: float) -> float:
    """A number as float32 has it."""
    return struct.unpack("f", struct.pack("f", number))[0]
