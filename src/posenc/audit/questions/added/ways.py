"""Does a token get the same, in whatever batch, memory, mode and dtype it comes?"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from posenc.audit.questions.added.inquiry import ROUNDING, AddedInquiry
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, question
from posenc.audit.questions.ways import CHANCE, Way, alike, by_chance, training

LARGE = 1024.0
"""A size of content that no clamp is meant for."""


@question(after=(*NO_LENGTH, *NO_STATE))
def same_however_it_is_given(inquiry: AddedInquiry) -> Answer:
    """Do tokens get the same in larger batches, in training and in other dtypes?"""
    view, plain = inquiry.view, inquiry.view.added()
    return alike(
        _ways(inquiry, plain),
        max(1.0, plain.abs().max().item()),
        "the same positions come out",
        f"import torch\nx = torch.zeros(1, {view.seq}, {view.dim})",
    )


def _ways(inquiry: AddedInquiry, plain: Tensor) -> Iterator[Way]:
    view, close = inquiry.view, ROUNDING
    beside = close * max(1.0, view.scale or 0.0)  # sums round at the size of what they are of
    for batch in (3, 5):
        yield (
            f"in a batch of {batch}",
            close,
            lambda batch=batch: (view.added(batch=batch)[batch - 1 :], plain),
        )
    if view.scale is not None:
        for size in (1.0, LARGE):
            yield (
                f"beside content of size {size:,.0f}",
                beside * size,
                lambda size=size: (_beside(inquiry, size), plain),
            )
    # a table that is held in 16 bits is a loss as well
    yield "in float64", 5 * 2.0**-8, lambda: (view.added(dtype=torch.float64), plain)
    yield "in float16", 5 * 2.0**-8, lambda: (view.added(dtype=torch.float16), plain)
    # of later tokens, positions and angles in 16 bits are a loss, which is asked for elsewhere
    yield (
        "in bfloat16",
        5 * 2.0**-8,
        lambda: (view.added(dtype=torch.bfloat16)[:, :3], plain[:, :3]),
    )
    thing = view.subject.fresh()
    if not isinstance(thing, nn.Module):
        return
    thing = training(thing)
    if by_chance(lambda: _beside(inquiry, 1.0, thing)):
        yield CHANCE, close, lambda: (plain, plain)
        return
    yield "in training", close, lambda: (view.added(by=thing), plain)
    if view.scale is not None:
        yield "in training, beside content", beside, lambda: (_beside(inquiry, 1.0, thing), plain)


def _beside(inquiry: AddedInquiry, size: float, by: nn.Module | None = None) -> Tensor:
    """What is added to content, which stands beside zeros everywhere else."""
    view = inquiry.view
    x = size * torch.randn(1, view.seq, view.dim, generator=torch.Generator().manual_seed(11))
    return view.call(x, by=by).double() - (view.scale or 0.0) * x.double()
