"""What determines a run: everything, written out, and its hash as the run's name."""

from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from json import dumps
from math import cos, pi
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from posenc.lab.tasks import TASKS, Task

FORMAT = 1  # raised when training itself changes, so that all runs are made anew

Kind = TypeVar("Kind")
Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0)]


class ModelSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body: pre-norm blocks, GELU, no dropout."""

    dim: Count = 64
    heads: Count = 4
    depth: Count = 2  # NoPE needs two, since a single causal block cannot tell places

    def __post_init__(self):
        if self.dim % self.heads:
            raise ValueError(f"dim is {self.dim}; it must be a multiple of heads, {self.heads}.")


class Training(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The budget, in steps: AdamW, a linear warm-up, a cosine to 0, clipped gradients."""

    steps: Count = 1000
    batch: Count = 32  # rows in each
    learning_rate: Positive = 2e-3  # the largest one
    warm_up: Annotated[int, Meta(ge=0)] = 100  # steps; a tenth of all where that is less
    clip: Positive = 1.0  # the largest norm of gradients
    weight_decay: Annotated[float, Meta(ge=0)] = 0.01
    examined: Count = 256  # rows of each length that are scored

    def rate(self, step: int) -> float:
        """The learning rate of update ``step``, from 0 on."""
        warm = min(self.warm_up, self.steps // 10)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (1 + cos(pi * (step - warm) / (self.steps - warm))) / 2


class Extension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trained model whose encoding is exchanged for longer rows."""

    of: str  # the run whose weights are taken
    use: tuple[str, ...]  # the encodings in their place
    version: str  # digest of their source
    factor: int  # the longer rows, in trained lengths
    steps: int = 0  # updates at the longer length
    learning_rate: float = 5e-4  # constant, in these


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run: a pure function of this value."""

    task: str
    task_version: int
    options: dict[str, Any]  # fields of the task
    use: tuple[str, ...]  # expressions of encodings, sizes filled in
    nope_layers: tuple[int, ...]  # layers whose attention has no positions
    version: str  # digest of the encodings' source
    model: ModelSize
    training: Training
    seed: int  # of everything that is drawn
    extension: Extension | None = None  # what happens after training, if anything
    format: int = FORMAT

    @property
    def id(self) -> str:
        """The run's name: a hash of all of this, the same on every machine.

        Example:
            >>> one = Configuration("copy", 1, {}, (), (), "", ModelSize(), Training(), seed=0)
            >>> one.id == Configuration.read(one.written()).id, len(one.id)
            (True, 16)
        """
        text = dumps(self.written(), sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:16]

    def written(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return as_json(self)

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Configuration":
        """From what ``written`` gave."""
        return converted(written, cls)

    def made_task(self) -> Task:
        """The task with its options."""
        return made_task(self.task, self.options)


def as_json(value: Any) -> dict[str, Any]:
    """The same as JSON holds it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def converted(given: Any, kind: type[Kind]) -> Kind:
    """``given`` as a struct or dataclass; a ValueError names the field that does not fit."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def made_task(name: str, options: Mapping[str, Any]) -> Task:
    """A task by its name.

    Example:
        >>> made_task("copy", {"trained": 4, "tested": [4, 8]}).tested
        (4, 8)
    """
    if name not in TASKS:
        raise ValueError(f"no task is called {name!r}; expected one of {', '.join(TASKS)}.")
    known = [each.name for each in fields(TASKS[name])]
    if unknown := options.keys() - known:
        raise ValueError(f"{name} has no option {min(unknown)!r}; expected {', '.join(known)}.")
    return converted(options, TASKS[name])
