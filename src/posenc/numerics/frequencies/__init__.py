"""Frequency schedules: one a file, frozen, exact, nested by value."""

from posenc.numerics.frequencies.divided import Divided
from posenc.numerics.frequencies.from_checkpoint import FromCheckpoint
from posenc.numerics.frequencies.geometric import Geometric
from posenc.numerics.frequencies.linear import Linear
from posenc.numerics.frequencies.llama3 import Llama3
from posenc.numerics.frequencies.longrope import LongRoPE
from posenc.numerics.frequencies.ntk import NTK, DynamicNTK
from posenc.numerics.frequencies.powers import Powers
from posenc.numerics.frequencies.proportional import Proportional
from posenc.numerics.frequencies.schedule import Schedule
from posenc.numerics.frequencies.yarn import YaRN

__all__ = [
    "NTK",
    "Divided",
    "DynamicNTK",
    "FromCheckpoint",
    "Geometric",
    "Linear",
    "Llama3",
    "LongRoPE",
    "Powers",
    "Proportional",
    "Schedule",
    "YaRN",
]
