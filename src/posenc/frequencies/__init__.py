"""Frequency schedules: one a file, frozen, exact, nested by value."""

from posenc.frequencies.by_length import ByLength, schedule_key
from posenc.frequencies.clipped import Clipped
from posenc.frequencies.divided import Divided
from posenc.frequencies.dype import DyNTK, DyYaRN
from posenc.frequencies.from_checkpoint import FromCheckpoint
from posenc.frequencies.geometric import Geometric
from posenc.frequencies.linear import Linear
from posenc.frequencies.llama3 import Llama3
from posenc.frequencies.longrope import LongRoPE
from posenc.frequencies.ntk import NTK, DynamicNTK
from posenc.frequencies.ntk_by_parts import NTKByParts
from posenc.frequencies.powers import Powers
from posenc.frequencies.proportional import Proportional
from posenc.frequencies.resonance import Resonance
from posenc.frequencies.riflex import RIFLEx, intrinsic_frequency
from posenc.frequencies.schedule import Schedule
from posenc.frequencies.turns_per_unit import TurnsPerUnit
from posenc.frequencies.yarn import YaRN

__all__ = [
    "NTK",
    "ByLength",
    "Clipped",
    "Divided",
    "DyNTK",
    "DyYaRN",
    "DynamicNTK",
    "FromCheckpoint",
    "Geometric",
    "Linear",
    "Llama3",
    "LongRoPE",
    "NTKByParts",
    "Powers",
    "Proportional",
    "RIFLEx",
    "Resonance",
    "Schedule",
    "TurnsPerUnit",
    "YaRN",
    "intrinsic_frequency",
    "schedule_key",
]
