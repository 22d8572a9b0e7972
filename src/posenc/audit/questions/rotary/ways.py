"""Is a token turned alike, in whatever batch, memory, mode and dtype it comes?"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import keeping_gradients
from posenc.audit.adapters.rotary_view import HEADS
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, question
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.ways import CHANCE, Way, alike, by_chance, training
from posenc.audit.report import NotAskedError

SEQ = 9

Turned = Callable[..., Tensor]
"""From content to what it is as queries, or as keys."""

COARSE = 2e-2
"""What cosines of 16 bits cost beside any other rounding."""


LARGE = 1024.0
"""By how much content is larger: a power of two, so that no digit changes."""


@question(after=(*NO_LENGTH, *NO_STATE, "gradient-cut"))
def same_however_it_is_given(inquiry: RotaryInquiry) -> Answer:
    """Are tokens turned alike in larger batches, strided memory, training and other dtypes?"""
    view, answer = inquiry.view, ""
    x = torch.randn(2, HEADS, SEQ, view.dim, generator=torch.Generator().manual_seed(11))
    for side in view.sides:
        said = alike(
            _ways(inquiry, x, side),
            max(1.0, x.abs().max().item()),
            f"the same {SAID[side]} at the same positions come out",
            f"import torch\nx = torch.randn(2, {HEADS}, {SEQ}, {view.dim})",
        )
        if not isinstance(said, str):
            return said
        answer = answer or said
    return answer


SAID = {"q": "queries", "k": "keys"}


def _ways(inquiry: RotaryInquiry, x: Tensor, side: str) -> Iterator[Way]:
    view = inquiry.view
    turned = partial(view.turned, side=side)
    plain = turned(x)
    least = COARSE if inquiry.coarse else 0.0
    dense = max(1e-5, least)
    for batch in (3, 5):
        more = torch.cat((x, x[:1].expand(batch - 2, -1, -1, -1)))
        yield f"in a batch of {batch}", dense, lambda more=more: (turned(more)[:2], plain)
    for name, lie in (("in strided memory", _strided), ("in transposed memory", _transposed)):
        yield name, dense, lambda lie=lie: (_lying(turned, x, lie), plain)
    if view.layout not in (*layouts.ONE_ROW, "bsx"):
        yield "among 12 heads", dense, lambda: _among_more(turned, x, plain)
    large = turned(LARGE * x) / LARGE
    yield f"{LARGE:,.0f} times as large and divided again", dense, lambda: (large, plain)
    yield "as sums of what each channel gives", dense, lambda: (plain, _summed(inquiry, x, side))
    yield "in float64", dense, lambda: (turned(x.double()), plain)
    yield "in float16", max(2.0**-8, least), lambda: (turned(x.half()), plain)
    # of later tokens, positions and angles in 16 bits are a loss, which is asked for elsewhere
    first = lambda: (turned(x.bfloat16())[:, :, :3], plain[:, :, :3])  # noqa: E731
    yield "in bfloat16", max(5 * 2.0**-8, least), first
    if side == "k":
        yield "with keys of half the heads", dense, lambda: _few_keys(inquiry, x)
    yield "where a gradient is wanted", dense, lambda: (_with_gradient(turned, x), plain)
    thing = view.subject.fresh()
    if not isinstance(thing, nn.Module):
        return
    thing = training(thing)
    if by_chance(lambda: turned(x, by=thing)):
        yield CHANCE, dense, lambda: (plain, plain)
    else:
        yield "in training", dense, lambda: (turned(x, by=thing), plain)


def _among_more(turned: Turned, x: Tensor, plain: Tensor) -> tuple[Tensor, Tensor]:
    made, heads = turned(x.repeat(1, 3, 1, 1)), plain.shape[1]  # as many, or those of few keys
    same = [HEADS * again + head for again in range(3) for head in range(heads)]
    return made[:, same], plain.repeat(1, 3, 1, 1)


def _summed(inquiry: RotaryInquiry, x: Tensor, side: str) -> Tensor:
    """x through the matrices that single channels showed, which are numbers of any dtype."""
    view = inquiry.view
    some = x if side == "q" else x[:, : view.kv_heads]
    return torch.einsum("sij,bhsj->bhsi", view.matrices(SEQ, side), some.double())


def _lying(turned: Turned, x: Tensor, lie: Callable[[Tensor], Tensor]) -> Tensor:
    with layouts.in_memory(lie):
        return turned(x)


def _strided(x: Tensor) -> Tensor:
    return torch.stack((x, torch.full_like(x, 7.0)), -1)[..., 0]


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(0, -2).contiguous().transpose(0, -2)


def _with_gradient(turned: Turned, x: Tensor) -> Tensor:
    with keeping_gradients():
        return turned(x.clone().requires_grad_()).detach()


def _few_keys(inquiry: RotaryInquiry, x: Tensor) -> tuple[Tensor, Tensor]:
    few, whole = (inquiry.view.both(x, x[:, :heads])[1] for heads in (HEADS // 2, HEADS))
    if few is None or whole is None:
        raise NotAskedError("it returns no keys")
    return few, whole[:, : HEADS // 2]
