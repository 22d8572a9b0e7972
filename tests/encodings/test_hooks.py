"""Hooks of encodings: what attention would not run is refused, or said."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from posenc import KERPLE, CoPE, DeBERTa, Learned, Positional, Shaw, T5Bias, TransformerXL
from posenc.transformer import Encoder

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
LEARNED = {
    "Learned": lambda: Positional(tokens=Learned(8, max_len=6)),
    "T5Bias": lambda: Positional(scores=T5Bias(2)),
    "TransformerXL": lambda: Positional(scores=TransformerXL(2, 4)),
    "DeBERTa": lambda: Positional(scores=DeBERTa(2, 4, buckets=4, max_distance=8)),
    "CoPE": lambda: Positional(scores=CoPE(2, 4, 4)),
}
OLD = {
    "weight_norm": nn.utils.weight_norm,
    "spectral_norm": nn.utils.spectral_norm,
    "prune": lambda module, name: prune.random_unstructured(module, name, 0.5),
}


class Tripled(nn.Module):
    def forward(self, weight):
        return 3 * weight


def encoding_of(positional):
    return [*positional.tokens, *positional.scores][0]


def weight_of(module):
    return next(name for name, p in module.named_parameters() if "." not in name and p.ndim > 1)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("hook", OLD)
@pytest.mark.parametrize("name", LEARNED)
def test_hooks_that_make_weights_are_refused_and_undone(name, hook):
    """Attention went on with the weight of the first moment, whatever was trained."""
    positional = LEARNED[name]()
    encoder, module = Encoder(8, 2, 1, positional=positional).eval(), encoding_of(positional)
    weight = weight_of(module)
    with torch.no_grad():
        getattr(module, weight).normal_()
    before, expected = set(module.state_dict()), encoder(X)
    with pytest.raises(TypeError, match=f"makes {weight} before each forward pass"):
        OLD[hook](module, weight)
    assert set(module.state_dict()) == before
    assert isinstance(getattr(module, weight), nn.Parameter)
    assert torch.equal(encoder(X), expected)


@pytest.mark.parametrize("name", LEARNED)
def test_parametrizations_are_followed(name):
    """Whatever a parametrization makes now is what a model of that weight computes."""
    positional, plain = LEARNED[name](), LEARNED[name]()
    encoder = Encoder(8, 2, 1, positional=positional).eval()
    other = Encoder(8, 2, 1, positional=plain).eval()
    module, weight = encoding_of(positional), weight_of(encoding_of(positional))
    with torch.no_grad():
        getattr(module, weight).normal_()
    other.load_state_dict(encoder.state_dict())
    encoder(X)  # what is kept by now is of the plain weight
    parametrize.register_parametrization(module, weight, Tripled())
    with torch.no_grad():
        getattr(encoding_of(plain), weight).mul_(3)
    torch.testing.assert_close(encoder(X), other(X))


def test_the_norm_of_a_parametrized_weight_learns():
    module = parametrizations.weight_norm(T5Bias(2))
    with torch.no_grad():
        module.parametrizations.weight.original1.normal_()
    encoder = Encoder(8, 2, 1, positional=Positional(scores=module))
    for _ in range(2):
        before = encoder(X)
        before.square().sum().backward()
        size = module.parametrizations.weight.original0
        assert size.grad.abs().sum() > 0
        with torch.no_grad():
            size.mul_(2)
        assert not torch.equal(encoder(X), before)


def test_other_hooks_are_told_where_they_run():
    """Of an ablation by a hook, attention saw nothing."""
    for module in (Learned(8, max_len=4), Shaw(2, 4, 3), KERPLE(2)):
        with pytest.warns(UserWarning, match="encoders call its table and encode"):
            module.register_forward_hook(lambda *_: None)
        with pytest.warns(UserWarning, match="run no hook of it"):
            module.register_forward_pre_hook(lambda *_: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Encoder(8, 2, 1).register_forward_hook(lambda *_: None)
