"""The tasks, one a file; a new one is a file, a line below, and a test.

Context extension is no task of its own: ``[[extensions]]`` of a grid extend any of these.
"""

from posenc.lab.tasks.base import Batch, Published, Task
from posenc.lab.tasks.byte_language_model import ByteLanguageModel
from posenc.lab.tasks.copy import Copy
from posenc.lab.tasks.counting import Counting
from posenc.lab.tasks.flip_flop import FlipFlop
from posenc.lab.tasks.k_back import KBack
from posenc.lab.tasks.k_front import KFront
from posenc.lab.tasks.local_language_model import LocalLanguageModel
from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.reversed_addition import ReversedAddition
from posenc.lab.tasks.word_order import WordOrder

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
