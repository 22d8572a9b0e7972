"""What determines a run: everything, written out, and its hash as the run's name."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from typing import Any

from posenc.arguments import MOST, check_number, check_positive_number, check_whole
from posenc.lab.tasks import TASKS, Task

FORMAT = 1
"""Raised when training itself changes, so that all runs are made anew."""


@dataclass(frozen=True)
class ModelSize:
    """The body: pre-norm blocks, GELU, no dropout.

    Args:
        dim: Width of a token.
        heads: Heads of attention.
        depth: Blocks; NoPE needs two, since a single causal one cannot tell places.
    """

    dim: int = 64
    heads: int = 4
    depth: int = 2

    def __post_init__(self):
        check_whole(dim=self.dim, heads=self.heads, depth=self.depth)
        if self.dim % self.heads:
            raise ValueError(f"dim is {self.dim}; it must be a multiple of heads, {self.heads}.")


@dataclass(frozen=True)
class Training:
    """The budget, in steps: AdamW, a linear warm-up, a cosine to 0, gradients clipped.

    Args:
        steps: Updates.
        batch: Rows in each.
        learning_rate: Its largest.
        warm_up: Steps until then; a tenth of ``steps`` where that is less.
        clip: The largest norm of gradients.
        weight_decay: Of AdamW.
        examined: Rows of each length that are scored.
    """

    steps: int = 1000
    batch: int = 32
    learning_rate: float = 2e-3
    warm_up: int = 100
    clip: float = 1.0
    weight_decay: float = 0.01
    examined: int = 256

    def __post_init__(self):
        check_whole(steps=self.steps, batch=self.batch, examined=self.examined)
        check_whole(0, warm_up=self.warm_up)
        check_positive_number(learning_rate=self.learning_rate, clip=self.clip)
        check_number(0.0, weight_decay=self.weight_decay)
        for name in ("learning_rate", "clip", "weight_decay"):  # 1 and 1.0 name the same run
            object.__setattr__(self, name, float(getattr(self, name)))

    def rate(self, step: int) -> float:
        """The learning rate of update ``step``, from 0 on.

        Raises:
            ValueError: ``step`` is no whole number from 0 on.

        Example:
            >>> training = Training(steps=1000, learning_rate=1.0)
            >>> training.rate(0), training.rate(99), round(training.rate(550), 6)
            (0.01, 1.0, 0.5)
        """
        from math import cos, pi

        check_whole(0, step=step)
        warm = min(self.warm_up, self.steps // 10)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (1 + cos(pi * (step - warm) / (self.steps - warm))) / 2


@dataclass(frozen=True)
class Extension:
    """A trained model whose encoding is exchanged for longer rows.

    Args:
        of: The run whose weights are taken.
        use: The encodings in their place.
        version: Digest of their source.
        factor: The longer rows, in trained lengths.
        steps: Updates at the longer length; 0 is none.
        learning_rate: Constant, in these.

    Raises:
        ValueError: ``factor`` is no whole number from 1 on, ``steps`` none from 0 on, or the rate
            not positive.
    """

    of: str
    use: tuple[str, ...]
    version: str
    factor: int
    steps: int = 0
    learning_rate: float = 5e-4

    def __post_init__(self):
        check_whole(factor=self.factor)
        check_whole(0, steps=self.steps)
        check_positive_number(learning_rate=self.learning_rate)


@dataclass(frozen=True)
class Configuration:
    """One run: a pure function of this value.

    Attributes:
        task: Its name.
        task_version: That of its rows.
        options: Its fields, written out.
        use: Expressions of encodings, sizes filled in.
        nope_layers: Layers in which attention is told nothing.
        version: Digest of the encodings' source.
        model: The body.
        training: The budget.
        seed: Of everything that is drawn.
        extension: What happens after training, if anything.

    Raises:
        TypeError: ``seed`` is no whole number.
        ValueError: A version or a layer is no whole number from 0 on.
    """

    task: str
    task_version: int
    options: Mapping[str, Any]
    use: tuple[str, ...]
    nope_layers: tuple[int, ...]
    version: str
    model: ModelSize
    training: Training
    seed: int
    extension: Extension | None = None
    format: int = field(default=FORMAT)

    def __post_init__(self):
        check_whole(0, task_version=self.task_version, format=self.format)
        check_whole(-MOST, seed=self.seed)
        for layer in self.nope_layers:
            check_whole(0, nope_layers=layer)

    @property
    def id(self) -> str:
        """The run's name: a hash of all of this, the same on every machine.

        Example:
            >>> one = Configuration("copy", 1, {}, (), (), "", ModelSize(), Training(), seed=0)
            >>> same = Configuration.read(one.written())
            >>> one.id == same.id, len(one.id)
            (True, 16)
        """
        text = json.dumps(self.written(), sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:16]

    def written(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Configuration":
        """From what ``written`` gave.

        Raises:
            ValueError: It was written by another version of the lab.
        """
        known = {each.name for each in fields(cls)}
        if set(written) != known or written["format"] != FORMAT:
            raise ValueError(
                f"the configuration has format {written.get('format')!r} and fields "
                f"{sorted(written)}; this lab reads format {FORMAT}. Plan the grid anew."
            )
        given = dict(written)
        given["model"] = ModelSize(**given["model"])
        given["training"] = Training(**given["training"])
        for name in ("use", "nope_layers"):
            given[name] = tuple(given[name])
        if given["extension"] is not None:
            extension = given["extension"]
            given["extension"] = Extension(**{**extension, "use": tuple(extension["use"])})
        return cls(**given)

    def made_task(self) -> Task:
        """The task with its options."""
        return made_task(self.task, self.options)


def made_task(name: str, options: Mapping[str, Any]) -> Task:
    """A task by its name.

    Raises:
        ValueError: There is none, it has no such option, or a value does not fit.

    Example:
        >>> made_task("copy", {"trained": 4, "tested": [4, 8]}).tested
        (4, 8)
    """
    if name not in TASKS:
        raise ValueError(f"{name!r} is no task; known are {', '.join(TASKS)}.")
    known = [each.name for each in fields(TASKS[name])]
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; it has {', '.join(known)}.")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    if "tested" in given and not isinstance(given["tested"], tuple):
        raise ValueError(f"tested is {given['tested']!r}; it must be a list of lengths.")
    return TASKS[name](**given)  # type: ignore[arg-type]


def options_of(task: Task) -> dict[str, Any]:
    """The fields of a task, as JSON holds them."""
    return json.loads(json.dumps(asdict(task)))
