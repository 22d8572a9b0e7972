"""torchtitan: complex numbers of float32, multiplied in float32 (Meta's own Llama code)."""

import torch
from torch import Tensor

from posenc.frequencies import Geometric, Llama3, YaRN
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile
from posenc.numerics.pairing import Pairing


class Torchtitan(Profile):
    """``ComplexRoPE``.

    Cosines of ``torch.polar`` may differ from those of ``torch.cos`` in their last bit. The product
    of complex numbers is four real products here, of which compilers fuse some with the sum.
    """

    name = "torchtitan"
    source = "torchtitan/models/common/rope.py"
    version = "torchtitan 0.3.0"
    evidence = "run"
    said = (
        "frequencies and angles in float32, a complex table by torch.polar, and a product of "
        "complex numbers of float32, rounded once"
    )
    pairings = ("interleaved",)
    schedules = (Geometric, Llama3, YaRN)
    layout = "complex"

    def check(self, schedule: Schedule, pairing: Pairing | None = None) -> None:
        super().check(schedule, pairing)
        if schedule.attention_factor != 1.0:
            raise ValueError(f"torchtitan leaves out the attention factor of {schedule!r}.")

    def frequencies(self, schedule: Schedule) -> Tensor:
        if not isinstance(schedule, YaRN):
            return schedule.float32("float32")
        if schedule.factor == 1:  # where it leaves the formula out
            return schedule.of.float32("float32")
        plain, ramp = schedule.of.float32("float32"), schedule.float32_ramp()
        return plain / float(schedule.factor) * ramp + plain * (1 - ramp)

    def cos_sin(self, angles: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """By ``torch.polar``."""
        polar = torch.polar(torch.ones_like(angles), angles)
        return polar.real, polar.imag
