"""Attention with a bias of distance: what it costs over attention without one.

The time beside each is that of the same attention without a bias.
"""

from collections.abc import Iterator

import torch
from torch.nn import functional as F

from benchmarks.harness import Case
from posenc import ALiBi, Positional, T5Bias, attention
from posenc.positions import consecutive

HEADS, WIDTH = 8, 64
LENGTHS, QUICK = (1024, 4096), (1024,)


def cases(quick: bool) -> Iterator[Case]:
    """ALiBi and T5Bias, with order and without, and a backward pass."""
    for length in QUICK if quick else LENGTHS:
        for causal in (False, True):
            yield forward(length, causal)
        yield backward(length)


def forward(length: int, causal: bool) -> Case:
    q, k, v = (torch.randn(1, HEADS, length, WIDTH) for _ in range(3))
    alibi, t5 = ALiBi(HEADS), T5Bias(HEADS).requires_grad_(False)
    positions = consecutive(length)
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1) if causal else None

    def dense(bias) -> torch.Tensor:
        mask = bias.table(positions, positions)
        mask = mask if hidden is None else mask.masked_fill(hidden, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, mask)

    contenders = {
        "posenc, ALiBi": lambda: attention(
            q, k, v, positional=Positional(scores=alibi), is_causal=causal
        ),
        "posenc, T5": lambda: attention(
            q, k, v, positional=Positional(scores=t5), is_causal=causal
        ),
        "dense ALiBi, rebuilt": lambda: dense(alibi),
        "dense T5Bias, rebuilt": lambda: dense(t5),
    }
    order = ", causal" if causal else ""
    return Case(
        f"attention {HEADS} × {length} × {WIDTH}{order}",
        contenders,
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        against="no bias",
    )


def backward(length: int) -> Case:
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    frozen, learning = T5Bias(HEADS).requires_grad_(False), T5Bias(HEADS)
    positions = consecutive(length)

    def both(made: torch.Tensor) -> None:
        made.sum().backward()

    contenders = {
        "posenc, ALiBi": lambda: both(
            attention(q, k, v, positional=Positional(scores=ALiBi(HEADS)))
        ),
        "posenc, T5 frozen": lambda: both(attention(q, k, v, positional=Positional(scores=frozen))),
        "posenc, T5 learning": lambda: both(
            attention(q, k, v, positional=Positional(scores=learning))
        ),
        "dense T5Bias, learning": lambda: both(
            F.scaled_dot_product_attention(q, k, v, learning.table(positions, positions)[None])
        ),
    }
    return Case(
        f"attention and backward {HEADS} × {length} × {WIDTH}",
        contenders,
        lambda: both(F.scaled_dot_product_attention(q, k, v)),
        against="no bias",
        gradients=True,
    )
