"""Keys that cannot matter stay where they are, and the results are those of one process."""

from unittest.mock import patch

import pytest
import torch

from posenc import (
    ALiBi,
    Positional,
    attention,
    explain_attention,
)
from posenc.distributed import Shards, ring
from posenc.distributed.transport import Schedule

LENGTH, HEADS, WIDTH = 256, 4, 8


def steep(group, slopes, window=None, content: float = 1.0) -> tuple:
    """The largest difference from one process, relative, and whose keys this rank took."""
    generator = torch.Generator().manual_seed(0)
    positional = Positional(scores=ALiBi(HEADS, slopes=slopes))
    whole = [
        (content * torch.randn(1, HEADS, LENGTH, WIDTH, generator=generator)).requires_grad_()
        for _ in range(3)
    ]
    given = {"is_causal": True, "positional": positional, "window": window}
    expected = attention(*whole, **given, backend="explicit")
    gradients = torch.autograd.grad(expected.sum(), whole)
    shards = Shards(group, length=LENGTH)
    part = [shards.cut(t.detach(), 2).requires_grad_() for t in whole]
    taken: list[tuple[bool, ...]] = []

    def noted(*arguments):
        made = Schedule(*arguments)
        taken.append(made.takes)
        return made

    with patch.object(ring, "Schedule", noted):
        out = attention(*part, **given, shards=shards, spread="ring")
    found = torch.autograd.grad(out.sum(), part)
    pairs = zip((out, *found), (expected, *gradients), strict=True)
    errors = [(shards.join(f, 2) - g).abs().max() / g.abs().max().clamp(min=1) for f, g in pairs]
    return float(max(errors)), taken[-1]


def unlike(group) -> tuple[float, str]:
    """The largest difference from one process where padding is scattered over the second half, and
    how this rank meets keys: a bias is a vector on some ranks alone."""
    generator = torch.Generator().manual_seed(0)
    whole = [torch.randn(1, HEADS, LENGTH, WIDTH, generator=generator) for _ in range(3)]
    real = torch.rand(1, LENGTH, generator=generator) < 0.7
    real[:, : LENGTH // 2] = True
    positional = Positional(scores=ALiBi(HEADS, slopes=(4.0, 4.0, 4.0, 4.0)))
    given = {"is_causal": True, "positional": positional}
    expected = attention(*whole, **given, padding_mask=real, backend="explicit")
    shards = Shards(group, padding_mask=real)
    part = [shards.cut(t, 2) for t in whole]
    out = shards.join(attention(*part, **given, shards=shards, spread="ring"), 2)
    told = explain_attention(*part, **given, shards=shards, spread="ring")
    off = (out - expected) * real[:, None, :, None]
    return float(off.abs().max()), str(told).splitlines()[-1]


@pytest.mark.parametrize(
    ("slopes", "window", "taken"),
    [
        # Slope 4: bias −120 at a distance of 30, beyond any score here.
        ((4.0, 4.0, 4.0, 4.0), None, 2),
        ((4.0, 4.0, 4.0, 0.001), None, 4),  # the gentlest head decides
        ((0.001, 0.001, 0.001, 0.001), 20, 2),
    ],
)
def test_steps_that_cannot_matter_are_left_out(ranks, slopes, window, taken):
    found = ranks.run(4, f"{__name__}:steep", slopes=slopes, window=window)
    for rank, (error, takes) in enumerate(found):
        assert error < 3e-6
        assert sum(takes) == min(taken, rank + 1)


def test_large_scores_reach_farther(ranks):
    """The bound is that of the scores: content ten times as large may outweigh a bias."""
    slopes = (4.0, 4.0, 4.0, 4.0)
    found = ranks.run(4, f"{__name__}:steep", slopes=slopes, content=10.0)
    assert max(error for error, _ in found) < 1e-4  # scores are hundreds, which round more
    assert sum(found[3][1]) == 4


def test_ranks_agree_how_far_they_look_though_their_parts_differ(ranks):
    """All of them ask each other for the largest score, or none of them does."""
    found = ranks.run(2, f"{__name__}:unlike")
    assert max(error for error, _ in found) < 3e-6
    matrices = ["0 form scores" not in told for _, told in found]
    assert set(matrices) == {True, False}, found
