"""What may be done with a tensor right now, in each of the ways in which torch runs code."""

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from posenc import Rotary
from posenc.guards import eager, may_look
from posenc.kernels.operators import NATIVE, serve


class Tagged(torch.Tensor):
    """A subclass that only wants to be seen."""


def within(transform):
    """Asks inside a transform, which calls the function that it is given."""

    def way(ask, x):
        seen = []
        transform(lambda y: seen.append(ask(y)) or y * 2, x)
        return seen[0]

    return way


def in_older_vmap(ask, x):
    """As gradients under ``is_grads_batched``."""
    seen, leaf = [], x.clone().requires_grad_()
    made = leaf * 2
    made.register_hook(lambda y: seen.append(ask(y)))
    torch.autograd.grad(made, leaf, x.expand(3, *x.shape), is_grads_batched=True)
    return seen[0]


def forward_mode(ask, x):
    with forward_ad.dual_level():
        return ask(forward_ad.make_dual(x, x))


def compiled(ask, x):
    torch.compiler.reset()
    run = torch.compile(lambda y: y * 2 if ask(y) else y * 3, backend="eager", fullgraph=True)
    return bool((run(x) == 2 * x).all())


def exported(ask, x):
    class Asking(torch.nn.Module):
        def forward(self, y):
            return y * 2 if ask(y) else y * 3

    for strict in (True, False):
        made = torch.export.export(Asking(), (x,), strict=strict).module()(x)
        if (made == 2 * x).all():
            return True
    return False


# How a question is asked; whether values may be looked at there, and whether operators serve.
WAYS = {
    "plainly": (lambda ask, x: ask(x), True, True),
    "a parameter": (lambda ask, x: ask(torch.nn.Parameter(x)), True, True),
    "a buffer": (lambda ask, x: ask(torch.nn.Buffer(x)), True, True),
    "without gradients": (lambda ask, x: torch.inference_mode()(ask)(x), True, True),
    "grad": (within(lambda f, x: torch.func.grad(lambda y: f(y).sum())(x)), True, False),
    "jvp": (within(lambda f, x: torch.func.jvp(f, (x,), (x,))), True, False),
    "forward mode": (forward_mode, True, False),
    "vmap": (within(lambda f, x: torch.func.vmap(f)(x)), False, False),
    "older vmap": (in_older_vmap, False, True),
    "make_fx": (within(lambda f, x: make_fx(f)(x)), False, True),
    "jit.trace": (within(lambda f, x: torch.jit.trace(f, x, check_trace=False)), False, False),
    "compile": (compiled, False, True),
    "export": (exported, False, False),
    "fake": (within(lambda f, x: f(FakeTensorMode().from_tensor(x))), False, False),
    "meta": (lambda ask, x: ask(x.to("meta")), False, False),
    "subclass": (lambda ask, x: ask(x.as_subclass(Tagged)), False, False),
    "negated lazily": (lambda ask, x: ask(torch.complex(x, x).conj().imag), True, True),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", WAYS)
def test_values_may_be_looked_at_and_operators_serve(way):
    asked, looks, runs = WAYS[way]
    x = torch.ones(2, 3)
    assert asked(may_look, x) is looks
    assert asked(serve, x) is (runs and NATIVE)


def test_what_vmap_does_not_map_over_may_be_looked_at():
    seen = []
    positions = torch.arange(3)
    torch.func.vmap(lambda x: seen.append((may_look(positions), eager())) or x)(torch.ones(2))
    assert seen == [(True, False)]


def test_gradients_of_each_sample_have_its_positions():
    rotary = Rotary(8)
    x, positions = (
        torch.randn(3, 2, 5, 8),
        torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 9, 9], [2, 2, 1, 0, 0]]),
    )

    def score(x, positions):
        q, k = rotary(x, x.square(), positions=positions)
        return (q * k).sum()

    each = torch.func.vmap(torch.func.grad(score))(x, positions)
    for sample, own, got in zip(x, positions, each, strict=True):
        assert torch.allclose(got, torch.func.grad(score)(sample, own), atol=1e-5)
