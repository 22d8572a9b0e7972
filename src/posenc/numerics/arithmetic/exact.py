"""posenc itself: every value correctly rounded, and rotation in float32."""

from torch import Tensor

from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile
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
    schedules = (Schedule,)

    def has(self, schedule: Schedule) -> bool:
        """Every schedule, whatever it rescales."""
        return True

    def table(self, positions: Tensor, schedule: Schedule) -> tuple[Tensor, Tensor]:
        """Correctly rounded, with the attention factor before the one rounding."""
        return SinCos(schedule).cos_sin(positions, factor=schedule.attention_factor)
