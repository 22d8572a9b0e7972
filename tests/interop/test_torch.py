"""Our encoder with the weights of torch.nn.TransformerEncoder computes what that computes."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from posenc import Positional, Sinusoidal
from posenc.interop.torch import encoder_from_torch


def torch_encoder(**arguments):
    torch.manual_seed(0)
    final = arguments.pop("final", False)
    layer = nn.TransformerEncoderLayer(16, 4, 40, batch_first=True, **arguments)
    norm = nn.LayerNorm(16) if final else None
    module = nn.TransformerEncoder(layer, 3, norm=norm, enable_nested_tensor=False)
    for weight in module.parameters():  # the layers are copies of one; let them differ
        nn.init.normal_(weight, std=0.2)
    return module


@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(("final", "bias"), [(False, True), (True, True), (True, False)])
def test_it_computes_the_same(norm_first, activation, final, bias, dtype, far):
    given = {"norm_first": norm_first, "activation": activation, "final": final, "bias": bias}
    module = torch_encoder(**given)
    module = module.to(dtype).train()  # as a model that trains: torch's fast path stays off
    for part in module.modules():
        if isinstance(part, nn.Dropout | nn.MultiheadAttention):
            part.p = part.dropout = 0.0
    x = torch.randn(2, 7, 16, dtype=dtype)
    real = torch.ones(2, 7, dtype=torch.bool)
    real[0, 4:] = False
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    for causal in (False, True):
        encoder = encoder_from_torch(module, is_causal=causal)
        for mask in (None, real):
            want = module(
                x,
                mask=later if causal else None,
                src_key_padding_mask=None if mask is None else ~mask,
            )
            got = encoder(x, padding_mask=mask)
            rows = slice(None) if mask is None else mask
            assert_close(got[rows], want[rows], atol=far, rtol=0)


def test_gradients_are_the_same():
    module = torch_encoder(dropout=0.0).double()
    encoder = encoder_from_torch(module)
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    grads = []
    for model in (module, encoder):
        leaf = x.clone().requires_grad_()
        model(leaf).square().sum().backward()
        grads.append(leaf.grad)
    assert_close(grads[1], grads[0], atol=1e-10, rtol=0)
    want = module.layers[2].linear2.weight.grad
    assert_close(encoder.blocks[2].feed_forward.contract.weight.grad, want, atol=1e-10, rtol=0)


def test_an_encoding_can_be_put_in():
    module = torch_encoder().eval()
    encoder = encoder_from_torch(module, positional=Positional(Sinusoidal(16)))
    x = torch.randn(1, 5, 16)
    assert_close(encoder(x), module(Sinusoidal(16)(x)), atol=1e-5, rtol=0)


def test_what_does_not_learn_there_does_not_learn_here():
    module = torch_encoder(final=True)
    frozen = module.layers[0], module.layers[1].self_attn.in_proj_weight, module.norm.bias
    for each in frozen:
        each.requires_grad_(False)
    encoder = encoder_from_torch(module)
    still = {name for name, each in encoder.named_parameters() if not each.requires_grad}
    whole = {f"blocks.0.{name}" for name, _ in encoder.blocks[0].named_parameters()}
    maps = {f"blocks.1.attention.{name}.weight" for name in ("queries", "keys", "values")}
    assert still == whole | maps | {"final_norm.bias"}


def test_layers_that_share_weights_share_them_here():
    module = torch_encoder()
    module.layers[2] = module.layers[0]
    module.layers[1].linear1.weight = module.layers[0].linear1.weight
    encoder = encoder_from_torch(module)
    first, second, third = encoder.blocks
    assert all(a is b for a, b in zip(first.parameters(), third.parameters(), strict=True))
    assert second.feed_forward.expand.weight is first.feed_forward.expand.weight
    assert second.attention.keys.weight is not first.attention.keys.weight
    assert first.attention.keys.weight is not first.attention.queries.weight
    count = sum(weight.numel() for weight in module.parameters())
    assert sum(weight.numel() for weight in encoder.parameters()) == count


@pytest.mark.parametrize(
    ("path", "field", "value", "noun"),
    [
        ("1.norm2", "eps", 0.5, "eps"),
        ("1.dropout1", "p", 0.5, "dropout"),
    ],
)
def test_what_an_encoder_cannot_be_is_refused(path, field, value, noun):
    module = torch_encoder()
    setattr(module.layers.get_submodule(path), field, value)
    with pytest.raises(ValueError, match=noun):
        encoder_from_torch(module)
