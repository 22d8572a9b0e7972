"""Is a token turned alike, in whatever batch, memory, mode and dtype it comes?"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import keeping_gradients
from posenc.audit.adapters.rotary import HEADS
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import NotAskedError

SEQ = 9

Way = Callable[[], tuple[Tensor, Tensor]]
"""From nothing to what came, and what would have come of the same tokens given plainly."""


@question(after=(*NO_LENGTH, *NO_STATE, "gradient-cut"))
def same_however_it_is_given(inquiry: RotaryInquiry) -> Answer:
    """Are tokens turned alike in larger batches, strided memory, training and other dtypes?"""
    view = inquiry.view
    x = torch.randn(2, HEADS, SEQ, view.dim, generator=torch.Generator().manual_seed(11))
    plain = view.turned(x)
    asked = []
    for name, rounding, way in _ways(inquiry, x, plain):
        try:
            made, expected = way()
        except (NotAskedError, RuntimeError, TypeError, ValueError, IndexError):
            continue  # refused aloud, which is no silent difference
        asked.append(name)
        off = (made.double() - expected.double()).abs().max().item()
        allowed = max(rounding, 2e-2 if inquiry.coarse else 0.0)
        if not off < allowed * max(1.0, x.abs().max().item()):
            return fault(
                "depends-on-how-it-is-given",
                "wrong",
                f"{name}, the same tokens at the same positions come out up to {off:.3g} otherwise",
                off,
                "import torch\n"
                f"x = torch.randn(2, {HEADS}, {SEQ}, {view.dim})\n"
                f"# {name}: against the same rows given plainly",
            )
    if not asked:
        raise NotAskedError("it took them in no other way")
    return "; ".join(asked)


def _ways(inquiry: RotaryInquiry, x: Tensor, plain: Tensor) -> Iterator[tuple[str, float, Way]]:
    view, dense = inquiry.view, 1e-5
    for batch in (3, 5):
        more = torch.cat((x, x[:1].expand(batch - 2, -1, -1, -1)))
        yield f"in a batch of {batch}", dense, lambda more=more: (view.turned(more)[:2], plain)
    for name, lie in (("in strided memory", _strided), ("in transposed memory", _transposed)):
        yield name, dense, lambda lie=lie: (_lying(inquiry, x, lie), plain)
    yield "in float64", dense, lambda: (view.turned(x.double()), plain)
    yield "in float16", 2.0**-8, lambda: (view.turned(x.half()), plain)
    # of later tokens, positions and angles in 16 bits are a loss, which is asked for elsewhere
    yield "in bfloat16", 5 * 2.0**-8, lambda: (view.turned(x.bfloat16())[:, :, :3], plain[:, :, :3])
    if view.sees_keys:
        yield "with keys of half the heads", dense, lambda: _few_keys(inquiry, x)
    yield "where a gradient is wanted", dense, lambda: (_with_gradient(inquiry, x), plain)
    if view.moves == "rows":
        yield "at positions that fall", dense, lambda: (_backwards(inquiry, x), plain)
    thing = view.subject.fresh()
    if isinstance(thing, nn.Module) and not _is_random(thing):
        modes = view.turned(x, by=thing.eval()), view.turned(x, by=thing.train())
        yield "in training", dense, lambda: modes


def _lying(inquiry: RotaryInquiry, x: Tensor, lie: Callable[[Tensor], Tensor]) -> Tensor:
    with layouts.in_memory(lie):
        return inquiry.view.turned(x)


def _strided(x: Tensor) -> Tensor:
    return torch.stack((x, torch.full_like(x, 7.0)), -1)[..., 0]


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(0, -2).contiguous().transpose(0, -2)


def _with_gradient(inquiry: RotaryInquiry, x: Tensor) -> Tensor:
    with keeping_gradients():
        return inquiry.view.turned(x.clone().requires_grad_()).detach()


def _backwards(inquiry: RotaryInquiry, x: Tensor) -> Tensor:
    """Tokens and their positions in the other order, and what came of them put back."""
    view, rows = inquiry.view, torch.arange(SEQ).flip(0).expand(len(x), -1)
    turned = x.flip(2)
    return view.both(turned, turned[:, : view.kv_heads], rows)[0].flip(2)


def _few_keys(inquiry: RotaryInquiry, x: Tensor) -> tuple[Tensor, Tensor]:
    few, whole = (inquiry.view.both(x, x[:, :heads])[1] for heads in (HEADS // 2, HEADS))
    if few is None or whole is None:
        raise NotAskedError("it returns no keys")
    return few, whole[:, : HEADS // 2]


def _is_random(thing: nn.Module) -> bool:
    return any("dropout" in type(each).__name__.lower() for each in thing.modules())
