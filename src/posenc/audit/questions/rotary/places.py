"""Is every position read as it is said?"""

import torch
from torch import Tensor

from posenc.audit.adapters.rotary_view import HEADS, RotaryView
from posenc.audit.questions.asking import NO_PLACE, Answer, fault, question
from posenc.audit.questions.places import ANYHOW, allowed, lines, over_the_edge, said, told
from posenc.audit.questions.rotary.inquiry import ROUNDING, RotaryInquiry
from posenc.audit.report import Fault, NotAskedError

MOST = 2**22


@question(after=NO_PLACE)
def reads_every_position(inquiry: RotaryInquiry) -> Answer:
    """Is each token turned by its own position: several at once, far, in any order?"""
    view = inquiry.view
    if not view.moves:
        return _by_what_was_left_out(view)
    others = _by_others(view)
    if isinstance(others, Fault):
        return others
    asked: list[Tensor] = []
    built = view.built_for or inquiry.length
    for line in lines(min(built, inquiry.length), in_any_order=view.moves != "offset"):
        x = _content(view, len(line))
        try:
            off = max(_apart(view, x, line, side) for side in view.sides)
        except NotAskedError:
            continue
        if off > allowed(line, ROUNDING):
            return _misread(view, f"tokens at {said(line)} are turned together", off)
        asked.append(line)
    words = told(asked)
    if view.unsaid is not None:
        count = max(1, min(built, inquiry.length, MOST // (HEADS * view.dim)))
        x = _content(view, count)
        line = torch.arange(count)[None]
        keys = x[:, : view.kv_heads]
        plain = view.unsaid(view.subject.fresh(), x.clone(), keys.clone(), line)
        off = max(
            (one - other).abs().max().item()
            for one, other in zip(plain, view.both(x, keys), strict=True)
            if one is not None and other is not None
        )
        if off > ROUNDING:
            return _misread(view, f"a row of {count:,} tokens is turned without positions", off)
        words += f"; without positions, {count:,} tokens"
    return _beyond(inquiry) or "; ".join(filter(None, (words, others)))


def _beyond(inquiry: RotaryInquiry) -> Fault | None:
    """What becomes of one token, and of two, that reach beyond the positions that it has."""
    view = inquiry.view
    line, _, refused = inquiry.far
    for edge in dict.fromkeys(filter(None, (line[-1] + 1 if refused else None, view.built_for))):
        found = over_the_edge(
            lambda line: view.at(line.tolist(), inquiry.shape.probe(), inquiry.side),
            edge,
            f"import torch\nx = torch.ones(1, 4, {{count}}, {view.dim})\n"
            f"# {view.text} at {{first}}",
        )
        if found is not None:
            return found
    return None


def _by_others(view: RotaryView) -> str | Fault:
    """Three tokens by each other parameter that may say where they stand."""
    line, heard = torch.arange(5, 8), []
    whole = _content(view, int(line[-1]) + 1)
    x = whole[:, :, line]
    for name, run in view.others:
        keys = x[:, : view.kv_heads].clone()
        try:
            made = run(view.subject.fresh(), x.clone(), keys, line[None])
            wanted = view.both(x, keys, line[None])
            if view.unsaid is not None:  # which may count its tokens from another number
                both = whole.clone(), whole[:, : view.kv_heads].clone()
                every = view.unsaid(view.subject.fresh(), *both, torch.arange(8)[None])
                wanted = tuple(None if each is None else each[:, :, line] for each in every)
            sides = zip(made, wanted, strict=True)
        except NotAskedError:
            continue
        off = max((a - b).abs().max().item() for a, b in sides if a is not None and b is not None)
        if off > ROUNDING:
            return _misread(view, f"tokens at {said(line)}, said by {name}, are turned", off)
        heard.append(f"so by {name}")
    return "; ".join(heard)


def _apart(view: RotaryView, x: Tensor, line: Tensor, side: str) -> float:
    """How far tokens turned together are from the same turned alone."""
    together = view.turned(x, at=line, side=side)
    alone = [view.turned(x[:, :, i : i + 1], int(p), side=side) for i, p in enumerate(line)]
    return (together - torch.cat(alone, 2)).abs().max().item()


def _by_what_was_left_out(view: RotaryView) -> Answer:
    """By a parameter of positions that did not show token by token."""
    if view.unheard is None:
        raise NotAskedError("positions cannot be said")
    name, run = view.unheard
    x = _content(view, 20)
    whole = view.turned(x)

    def off(line: Tensor) -> float:
        some = x[:, :, line].clone()
        made, _ = run(view.subject.fresh(), some, some[:, : view.kv_heads].clone(), line[None])
        return (made - whole[:, :, line]).abs().max().item()

    if off(torch.arange(9)) > ROUNDING:
        raise NotAskedError(f"positions said by {name} are not those of a row")
    for line in (torch.arange(2, 11), torch.tensor(ANYHOW)):
        if (far := off(line)) > ROUNDING:
            return _misread(view, f"tokens at {said(line)}, said by {name}, are turned", far)
    raise NotAskedError(f"positions said by {name} turn no token alone")


def _content(view: RotaryView, count: int) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(1, HEADS, count, view.dim, generator=generator)


def _misread(view: RotaryView, what: str, off: float) -> Fault:
    return fault(
        "positions-misread",
        "wrong",
        f"{what} up to {off:.3g} away from what each of these positions means",
        off,
        f"import torch\nx = torch.randn(1, 4, 3, {view.dim})\n# {view.text} there",
    )
