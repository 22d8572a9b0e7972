"""Encodings compared by training: small models, many seeds, numbers that a reader can repeat.

===============  =================================================================================
Grid             a TOML file: tasks × encodings × sizes × seeds. ``grid`` reads it, ``lines`` knows
                 where each mistake stands, ``encodings`` what an expression calls.
Run              a pure function of a ``Configuration``, named by its hash. ``training`` makes it,
                 ``checkpoints`` let it go on where it was killed, to the same bits.
Store            a folder with one JSON file a run, which is the truth. ``leases`` see to it that
                 nothing is made twice.
Engine           who makes runs: processes of this machine (``running``), or Ray (``cluster``).
Comparison       ``statistics`` of seeds, and from them the numbers of a report (``comparison``).
Report           the same numbers as HTML, Markdown and CSV (``report``).
===============  =================================================================================
"""

from posenc.lab.configuration import Configuration, Extension, ModelSize, Training
from posenc.lab.grid import Grid
from posenc.lab.planning import Plan, Planned, planned
from posenc.lab.reading import GridError, grid_from, shipped
from posenc.lab.store import Store
from posenc.lab.tasks import TASKS, Batch, Published, Task
from posenc.lab.training import Outcome, trained

__all__ = [
    "TASKS",
    "Batch",
    "Configuration",
    "Extension",
    "Grid",
    "GridError",
    "ModelSize",
    "Outcome",
    "Plan",
    "Planned",
    "Published",
    "Store",
    "Task",
    "Training",
    "grid_from",
    "planned",
    "shipped",
    "trained",
]
