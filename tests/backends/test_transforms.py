"""torch.func over attention: gradients, Jacobians and maps, of short rows and of long ones."""

import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap

from posenc import KERPLE, ALiBi, Positional, T5Bias, attention

HEADS, WIDTH = 2, 8

CASES = {
    "nothing": ({}, {}),
    "a window": ({}, {"window": 7}),
    "a mask": ({}, {"attn_mask": torch.linspace(-1, 1, 300 * 300).view(300, 300)}),
    "sinks": ({}, {"sinks": torch.zeros(HEADS)}),
    "fixed": ({"scores": ALiBi(HEADS)}, {}),
    "frozen": ({"scores": KERPLE(HEADS).requires_grad_(False)}, {}),
    "learned": ({"scores": KERPLE(HEADS)}, {}),
    "learned, far keys alike": ({"scores": T5Bias(HEADS, 8, 16, std=1.0)}, {}),
}

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch's vmap


class Layer(torch.nn.Module):
    def __init__(self, case: str, length: int):
        super().__init__()
        encodings, self.given = CASES[case]
        self.positional = Positional(**encodings)
        if "attn_mask" in self.given:
            self.given = {"attn_mask": self.given["attn_mask"][:length, :length]}

    def forward(self, *content):
        return attention(*content, is_causal=True, positional=self.positional, **self.given)


def content(length: int, *several: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*several, 1, HEADS, length, WIDTH, generator=generator) for _ in range(3)]


@pytest.mark.parametrize("length", [20, 300])
@pytest.mark.parametrize("case", CASES)
def test_gradients_and_jacobians_are_those_of_autograd(case, length):
    layer, leaves = Layer(case, length), [x.requires_grad_() for x in content(length)]
    learned = dict(layer.named_parameters())

    def loss(*content):
        return layer(*content).sin().sum()

    want = torch.autograd.grad(loss(*leaves), leaves)
    for transform in (grad, jacrev):
        got = transform(loss, argnums=(0, 1, 2))(*content(length))
        torch.testing.assert_close(got, want)

    def of_parameters(given):
        return functional_call(layer, given, tuple(content(length))).sin().sum()

    if any(p.requires_grad for p in learned.values()):
        wanted = torch.autograd.grad(loss(*leaves), list(learned.values()))
        for transform in (grad, jacrev):
            got = transform(of_parameters)({name: p.detach() for name, p in learned.items()})
            torch.testing.assert_close(list(got.values()), list(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [20, 300])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mapped", [0, 1, 2])
def test_what_is_mapped_over_may_be_one_of_the_three(case, length, mapped):
    layer, several = Layer(case, length), content(length, 2)
    given = [x if at == mapped else x[0] for at, x in enumerate(several)]
    got = vmap(layer, tuple(0 if at == mapped else None for at in range(3)))(*given)
    for number, made in enumerate(got):
        own = [x[number] if at == mapped else x for at, x in enumerate(given)]
        torch.testing.assert_close(made, layer(*own))


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("length", [20, 300])
@pytest.mark.parametrize("case", ["frozen", "learned", "learned, far keys alike"])
def test_parameters_of_several_models_may_be_mapped_over(case, length, detached):
    layer, own = Layer(case, length), content(length)
    stacked = {name: torch.stack([p, 1.5 * p]) for name, p in layer.named_parameters()}
    if detached:
        stacked = {name: p.detach() for name, p in stacked.items()}
    got = vmap(lambda given: functional_call(layer, given, tuple(own)))(stacked)
    for number, made in enumerate(got):
        given = {name: p[number] for name, p in stacked.items()}
        torch.testing.assert_close(made, functional_call(layer, given, tuple(own)))


def test_blocks_of_a_bias_that_learns_are_refused_in_words():
    layer = Positional(scores=KERPLE(HEADS))

    def loss(*content):
        return attention(*content, positional=layer, backend="strided").sum()

    with pytest.raises(ValueError, match="own backward pass cannot be transformed"):
        grad(loss)(*content(300))
