"""A grid: which tasks, encodings, sizes and seeds are run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from posenc.lab import encodings as naming
from posenc.lab.configuration import Configuration, Count, Extension, ModelSize, Training, as_json
from posenc.lab.tasks import Task

TUNING_SEED = 1_000_003  # seeds of tuning begin here, so that no reported run has tuned itself

Rates = Annotated[tuple[Annotated[float, Meta(gt=0)], ...], Meta(min_length=1)]
Seed = Annotated[int, Meta(ge=0, lt=TUNING_SEED)]


class Tuning(Struct, frozen=True, forbid_unknown_fields=True):
    """How a learning rate is chosen, where there are several."""

    learning_rates: Rates = (Training().learning_rate,)
    tuning_seeds: Count = 1  # runs of each rate
    tuning_steps: Count | None = None  # of each of these; those of the task if none


class GridEncoding(Struct, frozen=True, forbid_unknown_fields=True):
    """An encoding of a grid: expressions with sizes in braces, and layers without."""

    name: str
    use: tuple[str, ...] = ()
    nope_layers: tuple[int, ...] = ()


class GridExtension(Struct, frozen=True, forbid_unknown_fields=True):
    """What takes an encoding's place after training, for longer rows."""

    name: str
    of: str
    use: tuple[str, ...]
    factors: tuple[Annotated[int, Meta(ge=2)], ...]
    steps: tuple[Annotated[int, Meta(ge=0)], ...] = (0,)
    learning_rate: float = 5e-4

    def variants(self) -> Iterator[tuple[str, int, int]]:
        """Name, factor and steps of each."""
        for factor, steps in product(self.factors, self.steps):
            tuned = f", tuned {steps} steps" if steps else ""
            yield f"{self.name} ×{factor}{tuned}", factor, steps


class Gap(Struct, frozen=True, forbid_unknown_fields=True):
    """An ordering that the grid expects: a paired gap in every seed, at some trained lengths."""

    task: str
    better: str
    worse: str
    least: float
    at: int


@dataclass(frozen=True)
class GridTask:
    """A task of a grid."""

    name: str  # how the report calls it
    kind: str
    task: Task
    training: Training  # its learning rate is one of those of ``tuning``
    tuning: Tuning
    encodings: tuple[str, ...] = ()  # those that are run on it; all if none


class Grid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is to be run."""

    name: str
    folder: Path  # where paths as ``mine.py`` begin
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)]  # of the reported runs
    tasks: Annotated[tuple[GridTask, ...], Meta(min_length=1)]
    encodings: Annotated[tuple[GridEncoding, ...], Meta(min_length=1)]
    about: str = ""
    models: tuple[ModelSize, ...] = (ModelSize(),)
    extensions: tuple[GridExtension, ...] = ()
    gaps: tuple[Gap, ...] = ()  # expected orderings

    def cells(self) -> Iterator[tuple[GridTask, ModelSize, GridEncoding]]:
        """Each encoding with each task that it is run on, and each body."""
        for task, model, each in product(self.tasks, self.models, self.encodings):
            if not task.encodings or each.name in task.encodings:
                yield task, model, each

    def extending(self, encoding: GridEncoding) -> list[GridExtension]:
        """The extensions of an encoding."""
        return [each for each in self.extensions if each.of == encoding.name]

    def model_name(self, model: ModelSize) -> str:
        """How a body is called, where there are several."""
        if len(self.models) == 1:
            return ""
        return f"dim {model.dim}, heads {model.heads}, depth {model.depth}"


def sizes(task: Task, model: ModelSize, factor: int | None = None) -> dict[str, Any]:
    """What names in braces stand for, in tokens."""
    known = {
        "dim": model.dim,
        "heads": model.heads,
        "head_dim": model.dim // model.heads,
        "trained": task.tokens(task.trained),
        "longest": task.places,
        "is_causal": task.is_causal,
        "bidirectional": not task.is_causal,
    }
    if factor is not None:
        known |= {"factor": factor, "longest": task.tokens(task.trained * factor)}
    return known


def configured(
    task: GridTask, encoding: GridEncoding, model: ModelSize, seed: int, **training: Any
) -> Configuration:
    """One run of a grid, resolved; ``training`` are changes of its budget."""
    use = naming.filled(encoding.use, sizes(task.task, model))
    return Configuration(
        task=task.kind,
        task_version=task.task.version,
        options=as_json(asdict(task.task)),
        use=use,
        nope_layers=encoding.nope_layers,
        version=naming.version(use),
        model=model,
        training=replace(task.training, **training),
        seed=seed,
    )


def extended(base: Configuration, given: GridExtension, factor: int, steps: int) -> Configuration:
    """A run that extends the model of another."""
    task = base.made_task()
    use = naming.filled(given.use, sizes(task, base.model, factor))
    options = {**base.options, "tested": [task.trained, factor * task.trained]}
    extension = Extension(base.id, use, naming.version(use), factor, steps, given.learning_rate)
    return replace(base, options=options, extension=extension)
