"""How many learned numbers is a bias made of?"""

import torch
from torch import nn

from posenc.audit.adapters.bias import BiasView
from posenc.audit.adapters.calls import asking
from posenc.audit.report import NotAskedError


def numbers(view: BiasView, seq: int) -> int:
    """The size of all parameters of which a bias of ``seq`` tokens is made.

    Those of projections beside it, in the same module of attention, are none of these.
    """
    thing = view.subject.fresh()
    if not isinstance(thing, nn.Module):
        return 0
    sizes = {name: p.numel() for name, p in thing.named_parameters() if p.requires_grad}
    others = set(sizes) - _reached(view, seq)
    if others and not _moves(view, seq, others):
        return sum(size for name, size in sizes.items() if name not in others)
    return sum(sizes.values())


def _reached(view: BiasView, seq: int) -> set[str]:
    """The names of the parameters that the gradient of a bias reaches; none where it has none."""
    thing = view.subject.fresh()
    learned = {name: p for name, p in thing.named_parameters() if p.requires_grad}
    try:
        with asking(gradients=True):
            made = view.bias(seq, seq, by=thing)
    except NotAskedError:  # as of what is made by NumPy
        return set()
    if not made.requires_grad:
        return set()
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1)).to(made.dtype)
    found = torch.autograd.grad(made, [*learned.values()], weights, allow_unused=True)
    return {name for name, g in zip(learned, found, strict=True) if g is not None and g.any()}


def _moves(view: BiasView, seq: int, names: set[str]) -> bool:
    """Whether a bias is another where these parameters are, or is refused."""
    thing, generator = view.subject.fresh(), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, p in thing.named_parameters():
            if name in names:
                p.add_(torch.randn(p.shape, generator=generator).to(p))
    try:
        return not torch.equal(view.bias(seq, seq, by=thing), view.bias(seq, seq))
    except NotAskedError:
        return True
