"""A run: a pure function of its configuration."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor, nn

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
    weights: dict[str, Tensor] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Trains and examines one model.

    Args:
        configuration: Everything that decides.
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
        return _trained(configuration, weights, watch)


def _trained(
    asked: Configuration, weights: dict[str, Tensor] | None, watch: Watch | None
) -> Outcome:
    task, training, extension = asked.made_task(), asked.training, asked.extension
    tuned = () if extension is None else ("extension",)
    steps = training.steps if extension is None else extension.steps
    model = _model(asked, task, weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=training.weight_decay)
    begun = {"body": digest(model.body()), "encoding": digest(model.encodings())}
    data, seen = generator_for(asked.seed, "data", *tuned), ""
    torch.manual_seed(seed_of(asked.seed, "positions", *tuned))  # what remaps positions draws here
    losses, curve, seconds = list[float](), list[list[float]](), 0.0
    model.train()
    while len(losses) < steps and math.isfinite(losses[-1] if losses else 0.0):
        began = time.process_time()
        batch = _batch(asked, task, data)
        seen = _chained(seen, batch)
        optimizer.param_groups[0]["lr"] = (
            training.rate(len(losses)) if extension is None else extension.learning_rate
        )
        optimizer.zero_grad()
        value = loss(model(batch.tokens, batch.positions), batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip)
        optimizer.step()
        losses.append(value.item())
        seconds += time.process_time() - began
        if watch is not None:
            watch(len(losses), steps)
    every = max(1, steps // CURVE)
    for end in range(every, len(losses) + every, every):
        part = losses[end - every : end]
        curve.append([min(end, len(losses)), sum(part) / len(part)])
    written = {
        "steps": len(losses),
        "diverged": bool(losses) and not math.isfinite(losses[-1]),
        **_examined(asked, task, model),
        "curve": [point for point in curve if math.isfinite(point[1])],
        "parameters": model.learned(),
        "hashes": {**begun, "data": seen, "weights": digest(model.body() | model.encodings())},
    }
    return Outcome(written, seconds, model.state_dict())


def _model(asked: Configuration, task: Task, weights: dict[str, Tensor] | None) -> Model:
    encodings = drawn(
        (asked.extension or asked).use,
        depth=asked.model.depth,
        nope_layers=asked.nope_layers,
        seed=seed_of(asked.seed, "encoding"),
    )
    seed = seed_of(asked.seed, "body")
    model = built(task.vocabulary, asked.model, encodings, is_causal=task.is_causal, seed=seed)
    if asked.extension is not None:
        model.load_state_dict(weights or {})
    return model


def _batch(asked: Configuration, task: Task, data: torch.Generator) -> Batch:
    """The next rows. Where none has a target others are drawn, so that each step trains."""
    longer = asked.extension and task.trained * asked.extension.factor
    for _ in range(MOST_DRAWS):
        length = longer or task.training_length(data)
        batch = task.generate(data, length, asked.training.batch)
        if _asks(batch).any():
            return batch
    raise ValueError(
        f"{MOST_DRAWS:,} batches of {asked.task} have no target; make batches or rows longer."
    )


def _examined(asked: Configuration, task: Task, model: Model) -> dict[str, Any]:
    """Scores and losses by length; JSON has no word for what is no number."""
    rows = asked.training.examined
    found = {
        str(length): [
            each if math.isfinite(each) else None
            for each in examined(model, task.examined(), length, rows=rows, seed=asked.seed)
        ]
        for length in task.tested
    }
    scores, losses = ({n: each[turn] for n, each in found.items()} for turn in (0, 1))
    return {"loss": losses[str(task.trained)], "losses": losses, "scores": scores}


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
    """One thread, float32 on the CPU and deterministic algorithms; all is restored afterwards."""
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
