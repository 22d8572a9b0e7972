"""The tasks; a new one is a class, a line below, and a solver in the tests.

Context extension is no task of its own: ``[[extensions]]`` of a grid extend any of these.
"""

from posenc.lab.tasks.base import Batch, Published, Task
from posenc.lab.tasks.language import ByteLanguageModel, LocalLanguageModel
from posenc.lab.tasks.recall import FlipFlop, KBack, KFront, Passkey
from posenc.lab.tasks.sequences import Copy, Counting, ReversedAddition, WordOrder

TASKS: dict[str, type[Task]] = {
    "word_order": WordOrder,
    "local_language_model": LocalLanguageModel,
    "flip_flop": FlipFlop,
    "k_back": KBack,
    "k_front": KFront,
    "passkey": Passkey,
    "byte_language_model": ByteLanguageModel,
    "copy": Copy,
    "counting": Counting,
    "reversed_addition": ReversedAddition,
}

__all__ = ["TASKS", "Batch", "Published", "Task"]
