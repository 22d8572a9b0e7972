"""Queries and keys given in other ways."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import asking
from posenc.audit.adapters.rotary_view import HEADS
from posenc.audit.questions.ways import Way
from posenc.audit.report import NotAskedError

LARGE = 1024.0
"""By how much content is larger: a power of two, so that no digit changes."""


def own(q: Any, x: Tensor, plain: Tensor, side: str) -> list[Way]:
    """Other orders of axes and memory, other heads, and other sizes of content."""
    turned = partial(q.made, side=side)

    def among_more() -> tuple[Tensor, Tensor]:
        heads = plain.shape[1]  # as many as queries have, or those of few keys
        same = [HEADS * again + head for again in range(3) for head in range(heads)]
        return turned(x.repeat(1, 3, 1, 1))[:, same], plain.repeat(1, 3, 1, 1)

    def summed() -> Tensor:
        some = x if side == "q" else x[:, : q.view.kv_heads]
        matrices = q.view.matrices(x.shape[2], side)
        return torch.einsum("sij,bhsj->bhsi", matrices, some.double())

    def few_keys() -> tuple[Tensor, Tensor]:
        few, whole = (q.view.both(x, x[:, :n])[1] for n in (HEADS // 2, HEADS))
        if few is None or whole is None:
            raise NotAskedError("it returns no keys")
        return few, whole[:, : HEADS // 2]

    ways: list[Way] = [
        ("in strided memory", q.dense, lambda: (_lying(turned, x, _strided), plain)),
        ("in transposed memory", q.dense, lambda: (_lying(turned, x, _transposed), plain)),
        (f"{LARGE:g} times as large", q.dense, lambda: (turned(LARGE * x) / LARGE, plain)),
        ("as sums of what each channel gives", q.dense, lambda: (plain, summed())),
        ("where a gradient is wanted", q.dense, lambda: (_with_gradient(turned, x), plain)),
    ]
    if q.view.layout not in (*layouts.ONE_ROW, "bsx"):
        ways.append(("among 12 heads", q.dense, among_more))
    if side == "k":
        ways.append(("with keys of half the heads", q.dense, few_keys))
    return ways


def _lying(turned: Any, x: Tensor, lie: Any) -> Tensor:
    with asking(lie=lie):
        return turned(x)


def _strided(x: Tensor) -> Tensor:
    return torch.stack((x, torch.full_like(x, 7.0)), -1)[..., 0]


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(0, -2).contiguous().transpose(0, -2)


def _with_gradient(turned: Any, x: Tensor) -> Tensor:
    with asking(gradients=True):
        return turned(x.clone().requires_grad_()).detach()
