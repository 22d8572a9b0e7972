"""Inputs of models that take no tokens: images on a grid, frames, hidden states."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from tests.oracle_models.comparing import NEAR, by_head, far, pairs_of, stripped, turned
from tests.oracle_models.probing import Record, Rotated, watched
from torch import Tensor, nn

from posenc import AxialRotary, QueryKeyEncoding

ROWS, COLUMNS = 4, 6
FRAMES = 96


def run(model: nn.Module) -> tuple[Record, bool]:
    """What was seen of a model with the first inputs that it takes, and whether they are a grid.

    Raises:
        ValueError: It takes none of them.
    """
    names = inspect.signature(model.forward).parameters
    errors = []
    for inputs in candidates(model):
        if any(name not in names for name in inputs):
            continue
        torch.manual_seed(0)
        try:
            with watched(model) as record:
                model(**inputs)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}".split("\n")[0][:90])
            continue
        if record.rotated:
            return record, "grid_thw" in str(list(inputs)) or "pixel_values" in inputs
    raise ValueError(f"no inputs were taken: {errors[-1] if errors else list(names)}")


def candidates(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Inputs by the names that models have for them."""
    config: Any = model.config
    wide = next(
        (getattr(config, n, 0) for n in ("hidden_size", "d_model") if getattr(config, n, 0)), 0
    )
    patch = getattr(config, "patch_size", 16) or 16
    patch = patch[0] if isinstance(patch, list | tuple) else patch
    channels = getattr(config, "num_channels", None) or getattr(config, "in_channels", 3) or 3
    frames = getattr(config, "temporal_patch_size", 1) or 1
    grid, count = torch.tensor([[1, ROWS, COLUMNS]]), ROWS * COLUMNS
    for times in (frames, 1):
        flat = torch.randn(count, channels * times * patch * patch)
        for name in ("hidden_states", "pixel_values"):
            for called in ("grid_thw", "image_grid_thw"):
                yield {name: flat, called: grid}
    size = getattr(config, "image_size", None) or ROWS * patch
    size = size if isinstance(size, list | tuple) else (size, size)
    image = torch.randn(1, channels, ROWS * patch, COLUMNS * patch)
    yield {"pixel_values": image, "image_sizes": torch.tensor([[ROWS * patch, COLUMNS * patch]])}
    yield {"pixel_values": torch.randn(1, channels, *size)}
    yield {"pixel_values": image}
    if wide:
        for name in ("inputs_embeds", "hidden_states"):
            yield {name: torch.randn(1, FRAMES, wide)}
    mels = next(
        (getattr(config, n) for n in ("num_mel_bins", "feature_size", "input_size", "n_mels")
         if getattr(config, n, None)), 80)  # fmt: skip
    for shape in ((1, mels, FRAMES), (1, FRAMES, mels), (1, mels, 3000)):
        features = torch.randn(shape)
        yield {"input_features": features}
        mask = torch.ones(1, FRAMES, dtype=torch.long)
        yield {"input_features": features, "attention_mask": mask}
    yield {"input_values": torch.randn(1, 6400)}
    yield {"input_values": torch.randn(1, 1, 6400)}


def rotations_differ(
    encoding: QueryKeyEncoding, calls: Sequence[Rotated], grid: bool
) -> str | None:
    """What is wrong with an encoding of points or frames; None if some order of points fits."""
    found = pairs_of(calls) or _singly(calls)
    if not found:
        return "it is said to rotate, and no function was called"
    told = None
    for before, after in found[:4]:
        told = _one(encoding, before, after, grid)
        if told is not None:
            return told
    return told


def _singly(calls: Sequence[Rotated]):
    return [((c.before[0], c.before[0]), (c.after[0], c.after[0])) for c in calls]


def _one(encoding, before: Sequence[Tensor], after: Sequence[Tensor], grid: bool) -> str | None:
    best, shapes = None, tuple(before[0].shape)
    for length in sorted(set(before[0].shape[-3:-1]), reverse=True):
        q, k, q_after, k_after = (by_head(x, length) for x in (*before, *after))
        if any(x is None for x in (q, k, q_after, k_after)):
            continue
        ours = encoding if isinstance(encoding, AxialRotary) else stripped(encoding, q.shape[-1])
        if ours is None or (isinstance(ours, AxialRotary) and q.shape[-1] != ours.head_dim):
            best = f"{q.shape[-1]} channels are handed over, {encoding} was read"
            continue
        for points in orders(length, isinstance(ours, AxialRotary)):
            n = len(points)  # class tokens come last, and are left aside
            theirs = q_after[:, :n] @ k_after[:1, :n].mT
            own = turned(ours, q[:, :n], points) @ turned(ours, k[:, :n], points)[:1].mT
            share = far(own, theirs)
            if share <= NEAR:
                return None
            best = f"scores differ by {share:.2g}" if best is None else best
    return best or f"shapes are not understood: {shapes}"


def orders(length: int, axial: bool) -> Iterator[Tensor]:
    """Where tokens may stand: one after another; on a grid row by row, or by blocks of 2 × 2."""
    if not axial:
        yield torch.arange(length)
        return
    sides = [(ROWS, COLUMNS)] + [(n, n) for n in range(2, 40) if n * n in (length, length - 1)]
    for rows, columns in sides:
        if rows * columns > length:
            continue
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        points = torch.stack([y, x], -1)
        yield points.reshape(-1, 2)
        if rows % 2 == 0 and columns % 2 == 0:
            blocks = points.reshape(rows // 2, 2, columns // 2, 2, 2).permute(0, 2, 1, 3, 4)
            yield blocks.reshape(-1, 2)
