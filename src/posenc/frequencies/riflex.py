"""RIFLEx: one frequency of time lowered, so that a longer video does not repeat itself."""

from dataclasses import dataclass
from decimal import Decimal
from math import inf, isfinite
from numbers import Integral

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import (
    TWO_PI,
    Number,
    Schedule,
    check_length,
    check_positive,
    check_schedule,
    exact,
    plain,
)


@dataclass(frozen=True)
class RIFLEx(Schedule):
    """ω_k → share · 2π / length: the intrinsic frequency makes less than one turn in a video.

    The others stay. k counts from 1, as in the paper; ``intrinsic_frequency`` finds it from the
    frame at which videos of the model begin to repeat.

    Args:
        of: The schedule of time.
        k: The number of the intrinsic frequency, from 1 on.
        length: The latent frames of the longer video.
        share: How much of a turn it makes; 0.9 in the authors' code, and 1 in the paper.

    Raises:
        ValueError: There is no such frequency, a number is not positive, or the frequency would be
            raised: the video is no longer than one turn of it.

    Reference:
        Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion
        Transformers", equation 8 (arXiv:2502.15894); ``riflex_utils.py`` of thu-ml/RIFLEx.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> RIFLEx(Geometric(16, base=256.0), k=4, length=66, share=1).wavelengths()[2:5]
        (25.132741228718345, 66.0, 100.53096491487338)
    """

    of: Schedule
    k: int
    length: int
    share: Number = 0.9

    def __post_init__(self):
        check_schedule(self, self.of)
        count = len(self.of)
        whole = isinstance(self.k, Integral) and not isinstance(self.k, bool)
        if not whole or not 1 <= self.k <= count:
            raise ValueError(
                f"RIFLEx: k is {self.k!r}; {self.of!r} has frequencies 1 … {count}. Find it by "
                f"intrinsic_frequency(schedule, frames)."
            )
        check_length(self, self.length, name="length")
        check_positive(self, share=self.share)
        self._settle(
            attention_factor=self.of.attention_factor, softmax_factor=self.of.softmax_factor
        )
        before, after = (abs(each.wavelengths()[self.k - 1]) for each in (self.of, self))
        if after < before:
            raise ValueError(
                f"RIFLEx: a turn of frequency {self.k} takes {before:g} frames, and would take "
                f"{after:g} with length {self.length} and share {float(self.share):g}; RIFLEx "
                f"lowers a frequency. Take {self.of!r} as it is for so short a video, or another k."
            )

    def __len__(self) -> int:
        return len(self.of)

    def radians(self) -> tuple[Decimal, ...]:
        every = list(self.of.radians())
        every[self.k - 1] = exact(self.share) * TWO_PI / self.length
        return tuple(every)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them."""
        every = self.of.float32(form).clone()
        every[self.k - 1] = float(self.share) * 2 * torch.pi / self.length
        return every


def intrinsic_frequency(schedule: Schedule, frames: int) -> int:
    """k: the frequency whose period, in whole frames, is nearest to that of the repetition.

    Args:
        schedule: The schedule of time.
        frames: The latent frame at which videos of the model are first seen to repeat.

    Raises:
        ValueError: ``frames`` is no whole number from 1 on.

    Reference:
        Zhao et al. 2025, "RIFLEx", equation 7 (arXiv:2502.15894).

    Example:
        >>> from posenc.frequencies import Geometric
        >>> intrinsic_frequency(Geometric(16, base=256.0), 48)
        4
    """
    frames = plain(frames)
    check_length("intrinsic_frequency", frames, name="frames")
    away = [abs(round(abs(period)) - frames) if isfinite(period) else inf
            for period in schedule.wavelengths()]  # fmt: skip
    return away.index(min(away)) + 1
