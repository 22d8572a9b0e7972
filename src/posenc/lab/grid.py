"""A grid: which tasks, encodings, sizes and seeds are run, read from TOML."""

from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from posenc.arguments import check_whole
from posenc.lab import encodings as naming
from posenc.lab.configuration import (
    Configuration,
    Extension,
    ModelSize,
    Training,
    made_task,
    options_of,
)
from posenc.lab.lines import GridError, Table, parsed, read
from posenc.lab.model import Model
from posenc.lab.tasks import Task

TUNING_SEED = 1_000_003
"""Seeds of tuning begin here, so that no reported run has tuned itself."""


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
class GridEncoding:
    """An encoding of a grid: expressions with sizes in braces, and layers without."""

    name: str
    use: tuple[str, ...]
    nope_layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class GridExtension:
    """What takes an encoding's place after training, for longer rows."""

    name: str
    of: str
    use: tuple[str, ...]
    factors: tuple[int, ...]
    steps: tuple[int, ...]
    learning_rate: float

    def variants(self) -> Iterator[tuple[str, int, int]]:
        """Name, factor and steps of each."""
        for factor in self.factors:
            for steps in self.steps:
                tuned = f", tuned {steps} steps" if steps else ""
                yield f"{self.name} ×{factor}{tuned}", factor, steps


@dataclass(frozen=True)
class Gap:
    """An ordering that the grid expects: a paired gap in every seed, at some trained lengths."""

    task: str
    better: str
    worse: str
    least: float
    at: int


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


def shipped() -> list[str]:
    """The names of the grids that come with the library.

    Example:
        >>> "quick" in shipped()
        True
    """
    names = (each.name for each in files("posenc.lab").joinpath("grids").iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def grid_from(asked: str | Path, *, check: bool = True) -> Grid:
    """The grid of a file, or a shipped one by its name.

    Args:
        asked: A path, or one of ``shipped()``.
        check: Whether every encoding is built for every task, and called at the longest length.

    Raises:
        GridError: Something is wrong; it says on which line.
        OSError: The file cannot be read.

    Example:
        >>> [task.name for task in grid_from("quick", check=False).tasks]
        ['flip_flop', 'local_language_model']
    """
    if str(asked) in shipped() and not Path(asked).exists():
        text = files("posenc.lab").joinpath("grids", f"{asked}.toml").read_text(encoding="utf-8")
        return _grid(parsed(text, f"{asked}.toml"), Path.cwd(), check=check)
    path = Path(asked)
    if not path.is_file():
        raise GridError(
            f"{asked}: there is no such file, and no shipped grid of this name; shipped are "
            f"{', '.join(shipped())}."
        )
    return _grid(read(path), path.resolve().parent, check=check)


def sizes(task: Task, model: ModelSize, factor: int | None = None) -> dict[str, Any]:
    """What names in braces stand for, in tokens.

    Example:
        >>> sizes(made_task("copy", {}), ModelSize())["longest"]
        64
    """
    trained = task.tokens(task.trained)
    known = {
        "dim": model.dim,
        "heads": model.heads,
        "head_dim": model.dim // model.heads,
        "trained": trained,
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
    use = _filled(encoding.use, sizes(task.task, model))
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
    use = _filled(given.use, sizes(task, base.model, factor))
    options = {**base.options, "tested": [task.trained, factor * task.trained]}
    extension = Extension(base.id, use, naming.version(use), factor, steps, given.learning_rate)
    return replace(base, options=options, extension=extension)


def _filled(use: tuple[str, ...], known: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(naming.filled(text, known) for text in use)


# Reading.


def _grid(table: Table, folder: Path, *, check: bool) -> Grid:
    seeds = table.several("seeds", int)
    if len(seeds) == 1 and isinstance(table.values["seeds"], int):
        seeds = tuple(range(seeds[0]))
    if not seeds or len(set(seeds)) != len(seeds):
        table.fail("seeds", "seeds must be a number from 1 on, or a list of different ones.")
    if max(seeds) >= TUNING_SEED:
        table.fail("seeds", f"seeds holds {max(seeds)}; from {TUNING_SEED} on they tune alone.")
    training = table.table("training")
    tuning_steps = training.take("tuning_steps", int, None)
    tuning_seeds = training.take("tuning_seeds", int, 1)
    if tuning_seeds < 1:
        training.fail("tuning_seeds", f"tuning_seeds is {tuning_seeds}; it must be at least 1.")
    rates = training.several("learning_rates", float, [Training().learning_rate])
    budget = training.rest()
    tasks = [_task(each, budget, rates, training) for each in table.tables("tasks")]
    told = list(table.tables("encodings"))
    found = [_encoding(each) for each in told]
    extensions_told = list(table.tables("extensions"))
    extensions = tuple(_extension(each, found) for each in extensions_told)
    named = [each.name for each in found]
    named += [name for each in extensions for name, _, _ in each.variants()]
    grid = Grid(
        name=table.take("name", str),
        about=table.take("about", str, ""),
        folder=folder,
        tasks=tuple(tasks),
        encodings=tuple(found),
        extensions=extensions,
        models=tuple(_model(each) for each in table.tables("models")) or (ModelSize(),),
        seeds=seeds,
        tuning_seeds=tuning_seeds,
        tuning_steps=tuning_steps,
        gaps=tuple(_gap(each, tasks, named) for each in table.tables("gaps")),
    )
    table.finish()
    _check_names(table, grid)
    if check:
        with chdir(folder):
            _check_encodings(grid, told, extensions_told)
    return grid


def _task(table: Table, budget: dict, rates: tuple[float, ...], training: Table) -> GridTask:
    kind = table.take("task", str)
    name = table.take("name", str, kind)
    chosen = table.several("encodings", str, ())
    own_rates = table.several("learning_rates", float, rates)
    names = {each.name for each in fields(Training)} - {"learning_rate"}
    own = {key: table.take(key, type(getattr(Training(), key)))
           for key in names if key in table.values}  # fmt: skip
    if kind not in _tasks():
        table.fail("task", f"{kind!r} is no task; known are {', '.join(_tasks())}.")
    task = _tried(table, partial(made_task, kind, table.rest()))
    for key in budget:
        if key not in names:
            training.fail(key, f"{key!r} means nothing here; expected one of {', '.join(names)}.")
    budget = {"steps": task.steps, **budget}
    try:
        Training(**budget)
    except (TypeError, ValueError) as error:
        training.fail(next((key for key in budget if key in str(error)), None), error)
    made = _tried(table, partial(Training, **{**budget, **own}))
    if not own_rates or min(own_rates) <= 0:
        table.fail("learning_rates", "learning_rates must hold numbers above 0.")
    return GridTask(name, kind, task, made, own_rates, chosen)


def _encoding(table: Table) -> GridEncoding:
    made = GridEncoding(
        table.take("name", str),
        table.several("use", str, ()),
        table.several("nope_layers", int, ()),
    )
    table.finish()
    return made


def _extension(table: Table, known: list[GridEncoding]) -> GridExtension:
    made = GridExtension(
        name=table.take("name", str),
        of=table.take("of", str),
        use=table.several("use", str),
        factors=table.several("factors", int),
        steps=table.several("steps", int, (0,)),
        learning_rate=table.take("learning_rate", float, 5e-4),
    )
    table.finish()
    if made.of not in [each.name for each in known]:
        table.fail("of", f"of is {made.of!r}, which is none of the encodings here.")
    for factor in made.factors:
        _tried(table, partial(check_whole, 2, factors=factor), "factors")
    for steps in made.steps:
        _tried(table, partial(check_whole, 0, steps=steps), "steps")
    return made


def _model(table: Table) -> ModelSize:
    names = [each.name for each in fields(ModelSize)]
    given = {name: table.take(name, int) for name in names if name in table.values}
    table.asked.update(names)
    table.finish()
    return _tried(table, partial(ModelSize, **given))


def _gap(table: Table, tasks: list[GridTask], known: list[str]) -> Gap:
    made = Gap(
        table.take("task", str),
        table.take("better", str),
        table.take("worse", str),
        table.take("least", float),
        table.take("at", int),
    )
    table.finish()
    if made.task not in [each.name for each in tasks]:
        table.fail("task", f"task is {made.task!r}, which is none of the tasks here.")
    for name in ("better", "worse"):
        if getattr(made, name) not in known:
            table.fail(name, f"{name} is {getattr(made, name)!r}, which is none of the encodings.")
    return made


def _tried(table: Table, make: partial, name: str | None = None) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        told = str(error)
        at = name or next(
            (k for k in table.values if told.startswith(f"{k} ") or f"{k!r}" in told), None
        )
        table.fail(at, told)


def _tasks() -> list[str]:
    from posenc.lab.tasks import TASKS

    return list(TASKS)


# Checking.


def _check_names(table: Table, grid: Grid) -> None:
    for place in ("tasks", "encodings"):
        names = [each.name for each in getattr(grid, place)]
        if not names:
            table.fail(None, f"there are no {place}; write [[{place}]] for each.")
        for index, name in enumerate(names):
            if name in names[:index]:
                Table({}, table.file, table.lines, (place, index)).fail(
                    "name", f"{name!r} is the name of two {place}; give one of them another name."
                )
    names = [each.name for each in grid.encodings]
    for index, extension in enumerate(grid.extensions):
        for name, _, _ in extension.variants():
            if name in names:
                Table({}, table.file, table.lines, ("extensions", index)).fail(
                    "name", f"{name!r} is the name of two encodings; give one of them another name."
                )
            names.append(name)
    known = {each.name for each in grid.encodings}
    for index, task in enumerate(grid.tasks):
        for name in task.encodings:
            if name not in known:
                Table({}, table.file, table.lines, ("tasks", index)).fail(
                    "encodings", f"encodings holds {name!r}, which is none of the encodings here."
                )


def _check_encodings(grid: Grid, told: list[Table], extensions: list[Table]) -> None:
    """Builds every encoding for every task and calls it, at the longest length, once."""
    for task in grid.tasks:
        for model in grid.models:
            for table, each in zip(told, grid.encodings, strict=True):
                if each in grid.on(task):
                    _check_one(table, each.use, each.nope_layers, task.task, model, None)
            bases = {each.name: each for each in grid.on(task)}
            for table, each in zip(extensions, grid.extensions, strict=True):
                for factor in each.factors if each.of in bases else ():
                    layers = bases[each.of].nope_layers
                    _check_one(table, each.use, layers, task.task, model, factor)


def _check_one(
    table: Table,
    use: tuple[str, ...],
    nope_layers: tuple[int, ...],
    task: Task,
    model: ModelSize,
    factor: int | None,
) -> None:
    length = max(task.tested) if factor is None else task.trained * factor
    try:
        known = sizes(task, model, factor)
        made = naming.positional(_filled(use, known), depth=model.depth, nope_layers=nope_layers)
        with torch.random.fork_rng(devices=()), torch.no_grad():
            body = Model(
                task.vocabulary,
                model,
                made if not isinstance(made, list) else torch.nn.ModuleList(made),
                is_causal=task.is_causal,
            )
            batch = task.generate(torch.Generator().manual_seed(0), length, 1)
            body(batch.tokens, batch.positions)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        at = "nope_layers" if str(error).startswith("nope_layers") else "use"
        table.fail(at, f"{type(task).__name__} at length {length}: {error}")


__all__ = [
    "TUNING_SEED",
    "Gap",
    "Grid",
    "GridEncoding",
    "GridError",
    "GridExtension",
    "GridTask",
    "configured",
    "extended",
    "grid_from",
    "shipped",
    "sizes",
]
