"""Does a token get the same, in whatever batch, memory, mode and dtype it comes?"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.report import NotAskedError

Way = Callable[[], tuple[Tensor, Tensor]]


@question(after=(*NO_LENGTH, *NO_STATE))
def same_however_it_is_given(inquiry: AddedInquiry) -> Answer:
    """Do tokens get the same in larger batches, in training and in other dtypes?"""
    view = inquiry.view
    plain, asked = view.added(), []
    for name, rounding, way in _ways(inquiry, plain):
        try:
            made, expected = way()
        except NotAskedError:
            continue  # refused aloud, which is no silent difference
        asked.append(name)
        off = (made.double() - expected.double()).abs().max().item()
        if not off < rounding * max(1.0, expected.abs().max().item()):
            return fault(
                "depends-on-how-it-is-given",
                "wrong",
                f"{name}, the same positions get up to {off:.3g} other numbers",
                off,
                "import torch\n"
                f"x = torch.zeros(1, {view.seq}, {view.dim})\n"
                f"# {name}: against the same rows given plainly",
            )
    if not asked:
        raise NotAskedError("it took them in no other way")
    return "; ".join(asked)


def _ways(inquiry: AddedInquiry, plain: Tensor) -> Iterator[tuple[str, float, Way]]:
    view, close = inquiry.view, 1e-5
    for batch in (3, 5):
        yield (
            f"in a batch of {batch}",
            close,
            lambda batch=batch: (view.added(batch=batch)[batch - 1 :], plain),
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
    if isinstance(thing, nn.Module) and not _is_random(thing):
        yield "in training", close, lambda: (view.added(by=thing.train()), plain)


def _is_random(thing: nn.Module) -> bool:
    return any("dropout" in type(each).__name__.lower() for each in thing.modules())
