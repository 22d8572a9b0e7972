"""A grid: which tasks, encodings, sizes and seeds are run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from posenc.lab import encodings as naming
from posenc.lab.configuration import Configuration, Extension, ModelSize, Training, options_of
from posenc.lab.tasks import Task

TUNING_SEED = 1_000_003
"""Seeds of tuning begin here, so that no reported run has tuned itself."""


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
        for factor in self.factors:
            for steps in self.steps:
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
    """A task of a grid.

    Attributes:
        name: How the report calls it.
        kind: Which task it is.
        task: With its options.
        training: Its budget; the learning rate is one of ``rates``.
        rates: The learning rates that are tried.
        encodings: The names of those that are run on it; all if none.
    """

    name: str
    kind: str
    task: Task
    training: Training
    rates: tuple[float, ...]
    encodings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Everything that is to be run.

    Attributes:
        name: How the report calls it.
        about: A sentence.
        folder: Where paths as ``mine.py`` begin.
        tasks: Those of ``[[tasks]]``.
        encodings: Those of ``[[encodings]]``.
        extensions: Those of ``[[extensions]]``.
        models: The bodies.
        seeds: Those of the reported runs.
        tuning_seeds: How many runs choose a learning rate.
        tuning_steps: Steps of each; those of the task if none.
        gaps: Expected orderings.
    """

    name: str
    about: str
    folder: Path
    tasks: tuple[GridTask, ...]
    encodings: tuple[GridEncoding, ...]
    extensions: tuple[GridExtension, ...]
    models: tuple[ModelSize, ...]
    seeds: tuple[int, ...]
    tuning_seeds: int
    tuning_steps: int | None
    gaps: tuple[Gap, ...]

    def on(self, task: GridTask) -> list[GridEncoding]:
        """The encodings that are run on a task."""
        return [
            each for each in self.encodings if not task.encodings or each.name in task.encodings
        ]

    def model_name(self, model: ModelSize) -> str:
        """How a body is called, where there are several."""
        if len(self.models) == 1:
            return ""
        return f"dim {model.dim}, heads {model.heads}, depth {model.depth}"


def sizes(task: Task, model: ModelSize, factor: int | None = None) -> dict[str, Any]:
    """What names in braces stand for, in tokens.

    Example:
        >>> from posenc.lab import TASKS
        >>> sizes(TASKS["copy"](), ModelSize())["longest"]
        64
    """
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
    task: GridTask,
    encoding: GridEncoding,
    model: ModelSize,
    *,
    rate: float,
    seed: int,
    steps: int | None = None,
) -> Configuration:
    """One run of a grid, resolved; ``steps`` are fewer where a learning rate is tried."""
    use = filled(encoding.use, sizes(task.task, model))
    training = replace(task.training, learning_rate=rate)
    return Configuration(
        task=task.kind,
        task_version=task.task.version,
        options=options_of(task.task),
        use=use,
        nope_layers=encoding.nope_layers,
        version=naming.version(use),
        model=model,
        training=training if steps is None else replace(training, steps=steps),
        seed=seed,
    )


def extended(base: Configuration, given: GridExtension, factor: int, steps: int) -> Configuration:
    """A run that extends the model of another."""
    task = base.made_task()
    use = filled(given.use, sizes(task, base.model, factor))
    options = {**base.options, "tested": [task.trained, factor * task.trained]}
    extension = Extension(base.id, use, naming.version(use), factor, steps, given.learning_rate)
    return replace(base, options=options, extension=extension)


def filled(use: tuple[str, ...], known: Mapping[str, Any]) -> tuple[str, ...]:
    """Expressions with their sizes."""
    return tuple(naming.filled(text, known) for text in use)
