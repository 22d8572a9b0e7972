"""Layers inside encodings: what would be put on them, and not called, is refused."""

import importlib
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune

from posenc import SwinV2Bias
from posenc.positions import consecutive, grid

CONTRACTS = Path(__file__).parents[1] / "contracts"
LENGTH = 5


def cases():
    for file in sorted(CONTRACTS.glob("test_*.py")):
        collected = importlib.import_module(f"tests.contracts.{file.stem}")
        for name, case in collected.CASES.items():
            yield f"{file.stem.removeprefix('test_')}-{name}", case


def leaves(module):
    """Its layers of torch; encodings inside it, and lists of them, are asked themselves."""
    return [
        name
        for name, each in module.named_modules()
        if type(each).__module__.startswith("torch.nn.modules.")
        and not isinstance(each, nn.ModuleList | nn.ParameterList)
    ]


LAYERS = {
    f"{title}-{name}": (case, name) for title, case in cases() for name in leaves(case.module())
}


class Tripled(nn.Module):
    """An adapter, as it is put in the place of a layer, or on a weight."""

    def __init__(self, layer=None):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return 3 * (x if self.layer is None else self.layer(x))


def replaced(module, name):
    outer, _, own = name.rpartition(".")
    setattr(module.get_submodule(outer), own, Tripled(module.get_submodule(name)))


def patched(module, name):
    layer = module.get_submodule(name)
    layer.forward = lambda x, forward=layer.forward: 3 * forward(x)


WAYS = {
    "forward hook": lambda m, n: m.get_submodule(n).register_forward_hook(lambda *_: None),
    "forward pre-hook": lambda m, n: m.get_submodule(n).register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda m, n: m.get_submodule(n).register_full_backward_hook(lambda *_: None),
    "backward pre-hook": lambda m, n: m.get_submodule(n).register_full_backward_pre_hook(print),
    "adapter": replaced,
    "forward set on it": patched,
}


def made(case, module):
    torch.manual_seed(0)
    subject = case.subject()
    return subject.run(module, subject.content(LENGTH, (2,)), consecutive(LENGTH))


def test_there_are_layers_to_ask():
    assert {name.split("-", 1)[1] for name in LAYERS} >= {"fire-expand", "swin-v2-mlp.1"}
    assert {name.split("-", 1)[1] for name in LAYERS} >= {"dape-contract", "dape-v2-contract"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layer", LAYERS)
def test_what_would_not_run_is_refused(layer, way):
    """Weights were read, and what stood around them was left out in silence."""
    case, name = LAYERS[layer]
    torch.manual_seed(0)
    module = case.module()
    made(case, module)
    WAYS[way](module, name)
    with pytest.raises(TypeError, match=r"would not (run|be called)"):
        made(case, module)


WEIGHTED = [name for name, (case, of) in LAYERS.items()
            if hasattr(case.module().get_submodule(of), "weight")]  # fmt: skip


@pytest.mark.parametrize("layer", WEIGHTED)
def test_pruned_and_parametrized_weights(layer):
    """Pruning hooks the call; a parametrization changes what is read, and is heeded."""
    case, name = LAYERS[layer]
    torch.manual_seed(0)
    state = case.module().state_dict()
    pruned, scaled, plain = case.module(), case.module(), case.module()
    for module in (pruned, scaled, plain):
        module.load_state_dict(state)
    prune.random_unstructured(pruned.get_submodule(name), "weight", amount=0.5)
    with pytest.raises(TypeError, match="has a hook"):
        made(case, pruned)
    before = made(case, plain)
    parametrize.register_parametrization(scaled.get_submodule(name), "weight", Tripled())
    with torch.no_grad():
        plain.get_submodule(name).weight.mul_(3)
    wanted = made(case, plain)
    torch.testing.assert_close(made(case, scaled), wanted)
    assert any((a != b).any() for a, b in zip(before, wanted, strict=True))


def test_a_network_of_more_layers_is_refused():
    swin, points = SwinV2Bias(2, window=3), grid(3, 3)
    swin.mlp.append(nn.Tanh())
    with pytest.raises(TypeError, match="mlp of SwinV2Bias holds 4 layers, and 3 are read"):
        swin.table(points, points)
