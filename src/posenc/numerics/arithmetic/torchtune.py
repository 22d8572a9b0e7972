"""torchtune: a cache of float32, and rotation in float32."""

import torch
from torch import Tensor

from posenc.frequencies import Geometric, Llama3
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile, in_float32
from posenc.numerics.pairing import Pairing


class Torchtune(Profile):
    """``RotaryPositionalEmbeddings`` and ``Llama3ScaledRoPE``.

    Held to the bit against torchtune 0.6.1 on 2026-11-22, on a CPU.
    """

    name = "torchtune"
    source = "torchtune/modules/position_embeddings.py"
    version = "torchtune 0.6.1"
    evidence = "run"
    said = (
        "frequencies, angles, cosines and the cache in float32; products and sums in float32, "
        "rounded once"
    )
    pairings = ("interleaved",)
    schedules = (Geometric, Llama3)
    layout = "halves"

    def frequencies(self, schedule: Schedule) -> Tensor:
        return schedule.float32("float32")

    def kept(self, content: torch.dtype) -> torch.dtype:
        return torch.float32

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return in_float32(x, cos, sin, pairing)
