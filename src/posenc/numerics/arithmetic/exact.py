"""posenc itself: every value correctly rounded, and rotation in float32."""

import torch
from torch import Tensor

from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile, in_float32
from posenc.numerics.pairing import Pairing
from posenc.numerics.sincos import SinCos


class Exact(Profile):
    """What the encodings of this package do unless they are told otherwise."""

    name = "exact"
    source = "posenc"
    version = "this one"
    evidence = "run"
    said = (
        "angles in integers, cosines and sines correctly rounded to float32; products and sums in "
        "float32, rounded once"
    )
    pairings = ("half", "interleaved")
    schedules = (Schedule,)
    layout = "halves"

    def has(self, schedule: Schedule) -> bool:
        """Every schedule, whatever it rescales."""
        return True

    def frequencies(self, schedule: Schedule) -> Tensor:
        """For show; tables are made of 192 bits of each."""
        return schedule.float32("float32")

    def table(self, positions: Tensor, schedule: Schedule) -> tuple[Tensor, Tensor]:
        """Correctly rounded, with the attention factor before the one rounding."""
        return SinCos(schedule).cos_sin(positions, factor=schedule.attention_factor)

    def kept(self, content: torch.dtype) -> torch.dtype:
        return torch.float32

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return in_float32(x, cos, sin, pairing)
