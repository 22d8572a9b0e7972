"""A grid from its TOML file, with every mistake named by its field."""

import tomllib
from collections.abc import Callable, Collection, Sequence
from contextlib import chdir
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct

from posenc.lab.configuration import Configuration, Training, converted, made_task
from posenc.lab.grid import Grid, GridTask, Tuning, configured, extended
from posenc.lab.training import untrained

BUDGET = set(Training.__struct_fields__) - {"learning_rate"}
LISTS = {"use", "nope_layers", "encodings", "learning_rates", "factors"}


class GridError(ValueError):
    """What is wrong with a grid, with its file and field."""


class _TaskNames(Struct):
    task: str
    name: str = ""
    encodings: tuple[str, ...] = ()


def shipped() -> list[str]:
    """The names of the grids that come with the library."""
    return sorted(Path(each.name).stem for each in files("posenc.lab").joinpath("grids").iterdir())


def grid_from(asked: str | Path, more: Sequence[str] = (), *, check: bool = True) -> Grid:
    """The grid of a file, or a shipped one by its name.

    Args:
        asked: A path, or one of ``shipped()``.
        more: Expressions of further encodings, for all tasks.
        check: Whether every encoding is built for every task, and called at the longest length.

    Raises:
        GridError: Something is wrong; it names the field.

    Example:
        >>> [task.name for task in grid_from("quick", check=False).tasks]
        ['flip_flop', 'local_language_model']
    """
    path, folder = Path(asked), Path(asked).resolve().parent
    if not path.is_file():
        if str(asked) not in shipped():
            known = ", ".join(shipped())
            raise GridError(f"{asked}: no such file, and no shipped grid; shipped are {known}.")
        path, folder = files("posenc.lab").joinpath("grids", f"{asked}.toml"), Path.cwd()
    try:
        grid = _grid(tomllib.loads(path.read_text(encoding="utf-8")), more, folder)
        if check:
            with chdir(folder):
                _check_encodings(grid)
    except ValueError as error:  # of TOML and Unicode too
        raise GridError(f"{path}: {error}") from None
    return grid


def _grid(values: dict[str, Any], more: Sequence[str], folder: Path) -> Grid:
    for name, part in values.items():
        for table in part if isinstance(part, list) else [part]:
            if isinstance(table, dict):
                _list_single(table, LISTS | {"steps"} if name == "extensions" else LISTS)
    for use in more:  # a class of one's own goes by its name
        name = use.partition("(")[0].rpartition(":")[2] if ":" in use else use
        values.setdefault("encodings", []).append({"name": name, "use": [use]})
        for task in values.get("tasks", ()):
            task.get("encodings", []).append(name)
    if isinstance(values.get("seeds"), int):
        values["seeds"] = list(range(values["seeds"]))
    training = _at("training", converted, values.pop("training", {}), dict[str, Any])
    budget = _taken(training, BUDGET)
    _at("training", converted, training, Tuning)
    _at("training", converted, budget, Training)
    tables = _at("tasks", converted, values.pop("tasks", []), list[dict[str, Any]])
    tasks = [
        _at(f"tasks[{index}]", _task, each, budget, training) for index, each in enumerate(tables)
    ]
    grid = converted(values | {"folder": folder, "tasks": tasks}, Grid)
    _check_names(grid)
    return grid


def _list_single(table: dict[str, Any], lists: set[str]) -> None:
    """Single values become lists where lists belong."""
    for name in lists & table.keys():
        if not isinstance(table[name], list):
            table[name] = [table[name]]


def _task(values: dict[str, Any], budget: dict[str, Any], tuning: dict[str, Any]) -> GridTask:
    """The task with its options; its own budget and rates come before those of the grid."""
    asked = converted(_taken(values, _TaskNames.__struct_fields__), _TaskNames)
    budget = budget | _taken(values, BUDGET)
    tuning = tuning | _taken(values, {"learning_rates"})
    task = made_task(asked.task, values)
    training = converted({"steps": task.steps} | budget, Training)
    name, rates = asked.name or asked.task, converted(tuning, Tuning)
    return GridTask(name, asked.task, task, training, rates, asked.encodings)


def _taken(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The values with these names, taken out of ``values``."""
    return {name: values.pop(name) for name in names if name in values}


def _at(place: str, make: Any, *given: Any) -> Any:
    """What ``make`` gives; its complaint names the place in the file."""
    try:
        return make(*given)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise ValueError(f"{place}: {error}") from None


def _check_names(grid: Grid) -> None:
    tasks = [each.name for each in grid.tasks]
    plain = [each.name for each in grid.encodings]
    every = plain + [name for each in grid.extensions for name, _, _ in each.variants()]
    seeds = [str(seed) for seed in grid.seeds]
    for place, names in (("tasks", tasks), ("encodings", every), ("seeds", seeds)):
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"{place} has {min(twice)} twice; names and seeds must differ.")
    asked = [
        *(("tasks.encodings", name, plain) for task in grid.tasks for name in task.encodings),
        *(("extensions.of", each.of, plain) for each in grid.extensions),
        *(("gaps.task", gap.task, tasks) for gap in grid.gaps),
        *(("gaps", name, every) for gap in grid.gaps for name in (gap.better, gap.worse)),
    ]
    for place, name, known in asked:
        if name not in known:
            raise ValueError(f"{place} is {name!r}; expected one of {', '.join(known)}.")


def _check_encodings(grid: Grid) -> None:
    """Builds every encoding for every task and calls it, at the longest length, once."""
    for task, model, each in grid.cells():
        place = f"encodings {each.name!r} on {task.name}"
        base = _at(place, _called, configured, task, each, model, 0)
        for extension in grid.extending(each):
            for factor in extension.factors:
                place = f"extensions {extension.name!r} on {task.name}"
                _at(place, _called, extended, base, extension, factor, 0)


def _called(make: Callable[..., Configuration], *given: Any) -> Configuration:
    asked = make(*given)
    task = asked.made_task()
    with torch.random.fork_rng(devices=()), torch.no_grad():
        model = untrained(asked, task)
        batch = task.generate(torch.Generator().manual_seed(0), max(task.tested), 1)
        model(batch.tokens, batch.positions)
    return asked
