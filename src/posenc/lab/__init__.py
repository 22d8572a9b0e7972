"""Encodings compared by training: small models, many seeds, numbers that a reader can repeat.

A ``Grid`` (a TOML file) is tasks × encodings × sizes × seeds. A run is a pure function of its
``Configuration``, and a ``Store`` is a folder with one JSON file a run.
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
