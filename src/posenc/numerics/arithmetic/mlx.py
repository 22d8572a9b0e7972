"""MLX: frequencies by an exponential, cosines in the dtype of content, and rotation in it."""

from math import log

import torch
from torch import Tensor

from posenc.frequencies import Geometric, Linear
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile


class MLX(Profile):
    """``mlx.core.fast.rope`` on the CPU: exp(−i · ln(base) / (d/2)) instead of a power.

    Its exponentials, cosines and sines are its own and may differ from torch's in the last bits;
    its Metal kernel takes them by faster instructions still.
    """

    name = "mlx"
    source = "mlx/fast.cpp"
    version = "mlx 0.32.4"
    evidence = "read"
    said = (
        "frequencies as exp(−i·ln base / pairs) and angles in float32; cosines and every product "
        "and sum in the dtype of content"
    )
    schedules = (Geometric, Linear)
    linear = "multiplied"
    keeps = rotates = "content"

    def frequencies(self, schedule: Schedule) -> Tensor:
        plain = schedule.of if isinstance(schedule, Linear) else schedule
        assert isinstance(plain, Geometric)
        pairs = plain.dim // 2
        base = torch.tensor(plain.base, dtype=torch.float32).item()  # which it is there
        step = torch.tensor(log(base), dtype=torch.float32) / pairs
        return torch.exp(torch.arange(0, -pairs, -1, dtype=torch.float32) * step)
