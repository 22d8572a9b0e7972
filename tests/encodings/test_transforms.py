"""What torch.func makes of an encoding is what calls one after the other give."""

import pytest
import torch
from tests.goldens.encodings import battery
from torch import nn
from torch.func import functional_call, grad, vmap

from posenc.positions import consecutive

pytestmark = pytest.mark.slow
CASES = battery()
WEIGHTED = [name for name, case in CASES.items() if list(case.module().parameters())]
POSITIONS = torch.tensor([[0, 1, 2, 3], [3, 4, 5, 6], [1, 5, 6, 9]])


class Used(nn.Module):
    """An encoding as the battery uses it, called with positions and contents."""

    def __init__(self, case):
        super().__init__()
        self.subject = case.subject()
        self.module = self.subject.module.double()

    def forward(self, positions, *contents):
        made = self.subject.run(contents, positions)
        return tuple(part for part in made if part.is_floating_point())

    def contents(self):
        return tuple(self.subject.content(4, (2,), torch.float64))


def close(got, want):
    return all(torch.allclose(a, b, atol=1e-9) for a, b in zip(got, want, strict=True))


@pytest.fixture(params=CASES)
def used(request):
    torch.manual_seed(0)
    return Used(CASES[request.param])


def test_positions_may_be_mapped_over(used):
    contents = used.contents()
    every = vmap(lambda positions: used(positions, *contents))(POSITIONS)
    for place, positions in enumerate(POSITIONS):
        assert close([part[place] for part in every], used(positions, *contents))


def test_gradients_of_samples_are_those_of_one_sample_after_the_other(used):
    contents = used.contents()
    samples = tuple(torch.stack((each, each.cos(), each.sin())) for each in contents)
    arguments = tuple(range(1, 1 + len(contents)))

    def loss(positions, *contents):
        return sum(part.sin().sum() for part in used(positions, *contents))

    every = vmap(grad(loss, arguments))(POSITIONS, *samples)
    for place, positions in enumerate(POSITIONS):
        own = [each[place].requires_grad_() for each in samples]
        alone = torch.autograd.grad(loss(positions, *own), own, materialize_grads=True)
        assert close([part[place] for part in every], alone)


@pytest.mark.parametrize("used", WEIGHTED, indirect=True)
def test_other_weights_may_be_called_and_mapped_over(used):
    held = {name: each.detach() for name, each in used.named_parameters()}
    contents = used.contents()
    others = {name: each + torch.randn_like(each) / 4 for name, each in held.items()}
    own = used(consecutive(4), *contents)
    got = functional_call(used, others, (consecutive(4), *contents))
    both = {name: torch.stack((held[name], others[name])) for name in held}
    every = vmap(lambda each: functional_call(used, each, (consecutive(4), *contents)))(both)
    used.load_state_dict(used.state_dict() | others)
    assert close(got, used(consecutive(4), *contents))
    assert close([part[0] for part in every], own)
    assert close([part[1] for part in every], got)
