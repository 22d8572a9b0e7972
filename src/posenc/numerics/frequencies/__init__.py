"""Frequency schedules: one a file, frozen, exact, nested by value."""

from posenc.numerics.frequencies.from_checkpoint import FromCheckpoint
from posenc.numerics.frequencies.geometric import Geometric
from posenc.numerics.frequencies.powers import Powers
from posenc.numerics.frequencies.schedule import Schedule

__all__ = ["FromCheckpoint", "Geometric", "Powers", "Schedule"]
