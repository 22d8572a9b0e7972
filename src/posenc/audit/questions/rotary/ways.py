"""Queries and keys given in other ways."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import asking
from posenc.audit.adapters.rotary import HEADS
from posenc.audit.questions.ways import Way
from posenc.audit.report import NotAskedError

LARGE = 1024.0
"""By how much content is larger: a power of two, so that no digit changes."""


def own(q: Any, x: Tensor, plain: Tensor, side: str) -> Iterator[Way]:
    """Other orders of axes and memory, other heads, and other sizes of content."""
    turned, close = partial(q.made, side=side), q.dense

    def lying(lie: Any) -> tuple[Tensor, Tensor]:
        with asking(lie=lie):
            return turned(x), plain

    def among_more() -> tuple[Tensor, Tensor]:
        heads = plain.shape[1]  # as many as queries have, or those of few keys
        same = [HEADS * again + head for again in range(3) for head in range(heads)]
        return turned(x.repeat(1, 3, 1, 1))[:, same], plain.repeat(1, 3, 1, 1)

    def summed() -> tuple[Tensor, Tensor]:
        some = x if side == "q" else x[:, : q.view.kv_heads]
        matrices = q.view.matrices(x.shape[2], side)
        return plain, torch.einsum("sij,bhsj->bhsi", matrices, some.double())

    def with_gradient() -> tuple[Tensor, Tensor]:
        with asking(gradients=True):
            return turned(x.clone().requires_grad_()).detach(), plain

    def few_keys() -> tuple[Tensor, Tensor]:
        few, whole = (q.view.both(x, x[:, :n])[1] for n in (HEADS // 2, HEADS))
        if few is None or whole is None:
            raise NotAskedError("it returns no keys")
        return few, whole[:, : HEADS // 2]

    strided = lambda x: torch.stack((x, torch.full_like(x, 7.0)), -1)[..., 0]  # noqa: E731
    transposed = lambda x: x.transpose(0, -2).contiguous().transpose(0, -2)  # noqa: E731
    yield "in strided memory", close, lambda: lying(strided)
    yield "in transposed memory", close, lambda: lying(transposed)
    yield f"{LARGE:g} times as large", close, lambda: (turned(LARGE * x) / LARGE, plain)
    yield "as sums of what each channel gives", close, summed
    yield "where a gradient is wanted", close, with_gradient
    if q.view.layout not in (*layouts.ONE_ROW, "bsx"):
        yield "among 12 heads", close, among_more
    if side == "k":
        yield "with keys of half the heads", close, few_keys
