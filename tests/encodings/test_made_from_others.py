"""What is made from an encoding is as it was: dtype, what learns, and whether it trains."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from tests.one_rank import one_rank as one_rank
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from posenc import (
    DAPE,
    ALiBi,
    AxialRotary,
    DecomposedRelative,
    Learned,
    LearnedGrid,
    SwinBias,
    SwinV2Bias,
    T5Bias,
)
from posenc.distributed import own_heads
from posenc.encodings.bias import bias_apart


def of_one_rank(bias: nn.Module) -> nn.Module:
    return own_heads(bias, init_device_mesh("cpu", (1,)))


MADE: dict[str, tuple[nn.Module, Callable[[nn.Module], nn.Module]]] = {
    "learned": (Learned(8, 4), lambda encoding: encoding.resized(6)),
    "grid": (LearnedGrid(8, (3, 3)), lambda encoding: encoding.resized((4, 4))),
    "swin": (SwinBias(2, 3), lambda encoding: encoding.resized(4)),
    "swin-v2": (SwinV2Bias(2, 3, hidden=4), lambda encoding: encoding.resized(4)),
    "decomposed": (DecomposedRelative(2, 4, 3), lambda encoding: encoding.resized(4)),
    "axial": (AxialRotary(8), lambda encoding: encoding.with_schedules(encoding.schedules)),
    "heads": (T5Bias(2), lambda bias: bias[:1]),
    "apart": (T5Bias(2), lambda bias: bias_apart(bias, slice(0, 1))),
    "sum": (T5Bias(2), lambda bias: bias + deepcopy(bias)),
    "own heads": (T5Bias(2), of_one_rank),
    "own heads of a network": (SwinV2Bias(2, 3, hidden=4), of_one_rank),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_it_is_as_it_was(name, training):
    encoding, make = MADE[name]
    encoding = deepcopy(encoding).double().train(training)
    frozen = [index % 2 == 0 for index, _ in enumerate(encoding.parameters())]
    for parameter, still in zip(encoding.parameters(), frozen, strict=True):
        parameter.requires_grad_(not still)
    made = make(encoding)
    assert {parameter.dtype for parameter in made.parameters()} <= {torch.float64}
    assert {part.training for part in made.modules()} == {training}
    learns = [parameter.requires_grad for parameter in made.parameters()]
    assert learns == [not still for still in frozen] * (len(learns) // max(len(frozen), 1))
    assert (learns == []) == (frozen == [])


class LateDistance(ALiBi):
    reads_later = reads_neighbors = True


HOLDERS = {
    "sum": lambda bias: ALiBi(2) + bias,
    "heads of heads": lambda bias: bias[:2][1:],
    "dape": lambda bias: DAPE(2, bias),
    "own heads": of_one_rank,
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_what_holds_a_bias_claims_what_it_claims(hold):
    plain, late = hold(ALiBi(2)), hold(LateDistance(2))
    assert (plain.reads_later, plain.reads_neighbors) == (False, False)
    assert (late.reads_later, late.reads_neighbors, late.is_pairwise) == (True, True, True)
