"""A run: a pure function of its configuration, whenever it is interrupted."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from posenc.lab import checkpoints
from posenc.lab.configuration import Configuration
from posenc.lab.encodings import drawn
from posenc.lab.model import Model, built, digest
from posenc.lab.seeds import generator_for, seed_of
from posenc.lab.tasks.base import IGNORED, Batch, Task, loss

CURVE = 50
"""Points of a loss curve, each the mean of the steps since the one before."""

MOST_DRAWS = 1000
"""Batches without any target that are drawn for one step before the task is said to ask nothing."""

Watch = Callable[[int, int], None]


@dataclass
class Progress:
    """What a run has come to, beside its tensors; all of it is kept in checkpoints.

    Attributes:
        step: Updates made.
        data: A hash of every row seen so far, each built on the one before.
        curve: [step, mean loss] so far.
        losses: Of the steps since the last point.
        seconds: Of the processor, spent in these steps, over all of its processes.
    """

    step: int = 0
    data: str = ""
    curve: list[list[float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a run gives: these numbers are the same each time, but for ``seconds``.

    Attributes:
        written: Everything for the result file, under "outcome".
        seconds: Of the processor, training alone.
        weights: All tensors of the model.
    """

    written: dict[str, Any]
    seconds: float
    weights: dict[str, Tensor]


def trained(
    configuration: Configuration,
    *,
    checkpoint: Path | None = None,
    every: float = 10.0,
    weights: dict[str, Tensor] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Trains and examines one model.

    Args:
        configuration: Everything that decides.
        checkpoint: Where to keep what is needed to go on, and to go on from if it is there.
        every: Seconds between two of them; 0 keeps one after each step.
        weights: Those of ``configuration.extension.of``, where there is an extension.
        watch: Told the step and the number of steps, after each.

    Raises:
        ValueError: An encoding does not fit the task or the body, or the rows of the task ask
            nothing.

    Example:
        >>> from posenc.lab.configuration import ModelSize, Training
        >>> tiny = Configuration("k_front", 1, {"trained": 4, "tested": [4], "k": 1}, ("ALiBi(2)",),
        ...     (), "", ModelSize(8, 2, 1), Training(steps=2, batch=2, examined=4), seed=0)
        >>> sorted(trained(tiny).written["scores"])
        ['4']
    """
    with _deterministic():
        return _Run(configuration, checkpoint, every, weights, watch).outcome()


class _Run:
    def __init__(
        self,
        configuration: Configuration,
        checkpoint: Path | None,
        every: float,
        weights: dict[str, Tensor] | None,
        watch: Watch | None,
    ):
        self.configuration, self.task = configuration, configuration.made_task()
        self.checkpoint, self.every, self.watch = checkpoint, every, watch
        seed, extension = configuration.seed, configuration.extension
        self.model = self._model(weights)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=0.0,
            weight_decay=configuration.training.weight_decay,
        )
        self.begun = {
            "body": digest(self.model.body()),
            "encoding": digest(self.model.encodings()),
        }
        tuned = () if extension is None else ("extension",)
        self.data = generator_for(seed, "data", *tuned)
        torch.manual_seed(seed_of(seed, "positions", *tuned))  # what changes of positions draw from
        self.progress = Progress()

    @property
    def steps(self) -> int:
        extension = self.configuration.extension
        return self.configuration.training.steps if extension is None else extension.steps

    def _model(self, weights: dict[str, Tensor] | None) -> Model:
        asked, extension = self.configuration, self.configuration.extension
        encodings = drawn(
            asked.use if extension is None else extension.use,
            depth=asked.model.depth,
            nope_layers=asked.nope_layers,
            seed=seed_of(asked.seed, "encoding"),
        )
        model = built(
            self.task.vocabulary,
            asked.model,
            encodings,
            is_causal=self.task.is_causal,
            seed=seed_of(asked.seed, "body"),
        )
        if extension is not None:
            if weights is None:
                raise ValueError(f"the weights of run {extension.of} are missing; run it first.")
            model.load_state_dict(weights)
        return model

    def outcome(self) -> Outcome:
        self._resume()
        saved = time.monotonic()
        while self.progress.step < self.steps and not self._diverged():
            self._step()
            if self.checkpoint is not None and time.monotonic() - saved >= self.every:
                self._save()
                saved = time.monotonic()
        if self.progress.losses:
            self._point()
        return Outcome(self._examined(), self.progress.seconds, self.model.state_dict())

    def _step(self) -> None:
        began = time.process_time()
        training, progress = self.configuration.training, self.progress
        self.model.train()
        batch = self._batch()
        progress.data = _chained(progress.data, batch)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate()
        self.optimizer.zero_grad()
        value = loss(self.model(batch.tokens, batch.positions), batch)
        value.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.optimizer.step()
        progress.step += 1
        progress.losses.append(value.item())
        if len(progress.losses) >= max(1, self.steps // CURVE):
            self._point()
        progress.seconds += time.process_time() - began
        if self.watch is not None:
            self.watch(progress.step, self.steps)

    def _batch(self) -> Batch:
        """The next rows. Where none has a target others are drawn, so that each step trains."""
        rows = self.configuration.training.batch
        for _ in range(MOST_DRAWS):
            batch = self.task.generate(self.data, self._length(), rows)
            if _asks(batch).any():
                return batch
        raise ValueError(
            f"{MOST_DRAWS:,} batches of {self.configuration.task} have no target in {rows} rows; "
            "make batches larger, or rows longer."
        )

    def _length(self) -> int:
        extension = self.configuration.extension
        if extension is not None:
            return self.task.trained * extension.factor
        return self.task.training_length(self.data)

    def _rate(self) -> float:
        extension = self.configuration.extension
        if extension is not None:
            return extension.learning_rate
        return self.configuration.training.rate(self.progress.step)

    def _point(self) -> None:
        losses = self.progress.losses
        self.progress.curve.append([self.progress.step, sum(losses) / len(losses)])
        self.progress.losses = []

    def _diverged(self) -> bool:
        recent = self.progress.losses or [point[1] for point in self.progress.curve[-1:]]
        return bool(recent) and not math.isfinite(recent[-1])

    # What is kept, and gone on from.

    def _save(self) -> None:
        assert self.checkpoint is not None
        checkpoints.save(
            self.checkpoint,
            {
                "id": self.configuration.id,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "progress": vars(self.progress),
                "begun": self.begun,
                "data": self.data.get_state(),
                "positions": torch.get_rng_state(),
            },
        )

    def _resume(self) -> None:
        kept = checkpoints.load(self.checkpoint, self.configuration.id)
        if kept is None:
            return
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.progress, self.begun = Progress(**kept["progress"]), kept["begun"]
        self.data.set_state(kept["data"])
        torch.set_rng_state(kept["positions"])

    # What the model has learned.

    def _examined(self) -> dict[str, Any]:
        scores, losses = {}, {}
        for length in self.task.tested:
            found = examined(
                self.model,
                self.task.examined(),
                length,
                rows=self.configuration.training.examined,
                seed=self.configuration.seed,
            )
            # JSON has no word for what is no number.
            scores[str(length)], losses[str(length)] = (
                each if math.isfinite(each) else None for each in found
            )
        return {
            "steps": self.progress.step,
            "diverged": self._diverged(),
            "loss": losses[str(self.task.trained)],
            "losses": losses,
            "scores": scores,
            "curve": [point for point in self.progress.curve if math.isfinite(point[1])],
            "parameters": self.model.learned(),
            "hashes": {
                **self.begun,
                "data": self.progress.data,
                "weights": digest(self.model.body() | self.model.encodings()),
            },
        }


@torch.no_grad()
def examined(model: Model, task: Task, length: int, *, rows: int, seed: int) -> tuple[float, float]:
    """Mean score and loss over ``rows`` rows of ``length``, the same rows for every encoding.

    A row without a target has no part in the score, nor in the loss where those beside it have
    none either. Both are NaN where logits are no numbers, or no row has a target.
    """
    model.eval()
    generator = generator_for(seed, "examination", length)
    at_once = max(1, min(rows, 16384 // task.tokens(length)))
    scores, losses, asked, beside, left = 0.0, 0.0, 0, 0, rows
    while left > 0:
        count = min(at_once, left)
        batch = task.generate(generator, length, count)
        logits = model(batch.tokens, batch.positions)
        if not logits.isfinite().all():
            return math.nan, math.nan  # the largest of no numbers would be an answer, too
        left -= count
        asks = _asks(batch)
        if not asks.any():
            continue
        scores += task.score(logits, batch)[asks].double().sum().item()
        losses += loss(logits, batch).item() * count
        asked, beside = asked + int(asks.sum()), beside + count
    return (scores / asked, losses / beside) if asked else (math.nan, math.nan)


def _asks(batch: Batch) -> Tensor:
    """Which rows have a target, [batch]."""
    return (batch.targets != IGNORED).any(1)


def _chained(before: str, batch: Batch) -> str:
    found = sha256(before.encode())
    for tensor in (batch.tokens, batch.targets, batch.positions):
        found.update(b"" if tensor is None else tensor.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


@contextmanager
def _deterministic() -> Iterator[None]:
    """One thread, float32 on the CPU, and algorithms that give the same bits each time; afterwards
    all is as the caller had it, torch's own generator too."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    dtype = torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.random.fork_rng(devices=()), torch.device("cpu"):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(strict)
