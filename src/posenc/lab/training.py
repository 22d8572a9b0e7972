"""A run: a small transformer that is trained and examined, a pure function of its configuration."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite, nan
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.lab.configuration import Configuration, ModelSize
from posenc.lab.encodings import Layers, drawn
from posenc.lab.tasks.base import IGNORED, Batch, Task, loss
from posenc.transformer.encoder import Encoder

CURVE = 50  # points of a loss curve, each the mean of the steps since the one before
MOST_DRAWS = 1000  # batches without any target, before a task is said to ask nothing


class Model(nn.Module):
    """Token ids, an encoder and logits; the body is the same for every encoding.

    Embeddings have a standard deviation of 1, which is what additive encodings must be measured by:
    a learned table of 0.02 would hardly be seen beside them.
    """

    def __init__(self, vocabulary: int, size: ModelSize, positional: Layers, *, is_causal: bool):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size.dim)
        kind = {"norm": "pre", "activation": "gelu", "is_causal": is_causal}
        self.encoder = Encoder(size.dim, size.heads, size.depth, positional=positional, **kind)
        self.logits = nn.Linear(size.dim, vocabulary, bias=False)

    def forward(
        self, tokens: Int64[Tensor, "batch seq"], positions: Int64[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch seq vocabulary"]:
        """Logits of what follows each token; positions count from 0 if not given."""
        return self.logits(self.encoder(self.embedding(tokens), positions))


@dataclass(frozen=True)
class Outcome:
    """What a run gives; all but ``seconds`` are the same each time."""

    written: dict[str, Any]  # for the result file, under "outcome"
    seconds: float  # of the processor, training alone
    weights: dict[str, Tensor]  # all tensors of the model


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


@_deterministic()
def trained(asked: Configuration, *, weights: dict[str, Tensor] | None = None) -> Outcome:
    """Trains and examines one model, from ``weights`` where it extends another.

    Example:
        >>> from posenc.lab import ModelSize, Training
        >>> tiny = Configuration("k_front", 1, {"trained": 4, "tested": [4], "k": 1}, ("ALiBi(2)",),
        ...     (), "", ModelSize(8, 2, 1), Training(steps=2, batch=2, examined=4), seed=0)
        >>> sorted(trained(tiny).written["scores"])
        ['4']
    """
    task, training, extension = asked.made_task(), asked.training, asked.extension
    tuned = () if extension is None else ("extension",)
    steps = (extension or training).steps
    model = untrained(asked, task)
    if extension is not None:
        model.load_state_dict(weights or {})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=training.weight_decay)
    hashes = {name: _digest(part) for name, part in _parts(model.state_dict()).items()}
    data, seen = generator_for(asked.seed, "data", *tuned), ""
    torch.manual_seed(seed_of(asked.seed, "positions", *tuned))  # what remaps positions draws here
    losses, seconds = list[float](), 0.0
    model.train()
    while len(losses) < steps and all(map(isfinite, losses[-1:])):
        began = time.process_time()
        batch = _batch(asked, task, data)
        seen = _digest([(seen, batch.tokens), ("", batch.targets), ("", batch.positions)])
        rate = training.rate(len(losses)) if extension is None else extension.learning_rate
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        value = loss(model(batch.tokens, batch.positions), batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip)
        optimizer.step()
        losses.append(value.item())
        seconds += time.process_time() - began
    body, encoding = _parts(model.state_dict()).values()
    learned = _parts(dict(model.named_parameters()))  # what layers share stands there once
    written = {
        "steps": len(losses),
        "diverged": not all(map(isfinite, losses[-1:])),
        **_examined(asked, task, model),
        "curve": _curve(losses, max(1, steps // CURVE)),
        "parameters": {name: sum(w.numel() for _, w in part) for name, part in learned.items()},
        "hashes": {**hashes, "data": seen, "weights": _digest(body + encoding)},
    }
    return Outcome(written, seconds, model.state_dict())


def untrained(asked: Configuration, task: Task) -> Model:
    """The model as drawn: the body is drawn from its own seed, whatever the encodings are."""
    encodings = drawn(
        (asked.extension or asked).use,
        depth=asked.model.depth,
        nope_layers=asked.nope_layers,
        seed=seed_of(asked.seed, "encoding"),
    )
    torch.manual_seed(seed_of(asked.seed, "body"))
    return Model(task.vocabulary, asked.model, encodings, is_causal=task.is_causal)


def _batch(asked: Configuration, task: Task, data: torch.Generator) -> Batch:
    """The next rows. Where none has a target others are drawn, so that each step trains."""
    longer = asked.extension and task.trained * asked.extension.factor
    for _ in range(MOST_DRAWS):
        length = longer or task.training_length(data)
        batch = task.generate(data, length, asked.training.batch)
        if _asks(batch).any():
            return batch
    raise ValueError(f"{MOST_DRAWS} batches of {asked.task} have no target; make them larger.")


def _curve(losses: list[float], every: int) -> list[list[float]]:
    """Points [step, mean loss]; those that are no numbers are left out."""
    parts = {end: losses[end : end + every] for end in range(0, len(losses), every)}
    points = [[begin + len(part), sum(part) / len(part)] for begin, part in parts.items()]
    return [point for point in points if isfinite(point[1])]


def _examined(asked: Configuration, task: Task, model: Model) -> dict[str, Any]:
    """Scores and losses by length; JSON has no word for what is no number."""
    scores, losses = dict[str, float | None](), dict[str, float | None]()
    for length in task.tested:
        rows = asked.training.examined
        found = examined(model, task.examined(), length, rows=rows, seed=asked.seed)
        scores[str(length)], losses[str(length)] = (v if isfinite(v) else None for v in found)
    return {"loss": losses[str(task.trained)], "losses": losses, "scores": scores}


@torch.no_grad()
def examined(
    model: nn.Module, task: Task, length: int, *, rows: int, seed: int
) -> tuple[float, float]:
    """Mean score and loss over ``rows`` rows of ``length``, the same rows for every encoding.

    Rows without a target do not count. Both are NaN where no row has one, or logits are no numbers.
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
            return nan, nan
        left -= count
        asks = _asks(batch)
        if asks.any():
            scores += task.score(logits, batch)[asks].double().sum().item()
            losses += loss(logits, batch).item() * count
            asked, beside = asked + int(asks.sum()), beside + count
    return (scores / asked, losses / beside) if asked else (nan, nan)


def _asks(batch: Batch) -> Tensor:
    """Which rows have a target, [batch]."""
    return (batch.targets != IGNORED).any(1)


def seed_of(seed: int, *purpose: object) -> int:
    """A 63-bit seed for one purpose: what an encoding draws leaves body and data as they are."""
    written = ":".join(map(str, (seed, *purpose)))
    return int.from_bytes(sha256(written.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, *purpose: object) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(seed, *purpose))


def _parts(tensors: dict[str, Tensor]) -> dict[str, list[tuple[str, Tensor]]]:
    """The tensors of the body and those of the encodings, with their names."""
    parts = {"body": [], "encoding": []}
    for name, tensor in sorted(tensors.items()):
        parts["encoding" if ".positional." in name else "body"].append((name, tensor))
    return parts


def _digest(tensors: Iterable[tuple[str, Tensor | None]]) -> str:
    """A hash of names and bits."""
    found = sha256()
    for name, tensor in tensors:
        found.update(name.encode())
        if tensor is not None:
            found.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]
