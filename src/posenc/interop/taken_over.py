"""Parameters taken over from another model, with what their numbers alone do not tell."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor, nn


class Taken(NamedTuple):
    """Where a parameter comes from."""

    of: Tensor  # another one
    part: int = 0  # which of so many equal parts of its rows
    parts: int = 1  # how many there are


def take_over(model: nn.Module, given: Mapping[str, Taken]) -> None:
    """Give ``model`` copies of parameters: their numbers, dtype, device, and whether they learn.

    What was one parameter in several places is one here, too.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    if own.keys() != given.keys():
        unlike = ", ".join(sorted(own.keys() ^ given.keys()))
        raise ValueError(f"{unlike}: there or here alone; parameters are taken over one for one.")
    copies: dict[tuple[int, int, int], nn.Parameter] = {}
    for name, (of, part, parts) in given.items():
        key = (id(of), part, parts)
        if key not in copies:
            numbers = of.detach().chunk(parts)[part].clone()
            copies[key] = nn.Parameter(numbers, requires_grad=of.requires_grad)
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, copies[key])
