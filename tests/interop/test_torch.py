"""Our encoder with the weights of torch.nn.TransformerEncoder computes what that computes."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from posenc import Positional, Sinusoidal
from posenc.interop.taken_over import Taken, take_over
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
@pytest.mark.parametrize("final", [False, True])
def test_it_computes_the_same(norm_first, activation, final, dtype, far):
    module = torch_encoder(norm_first=norm_first, activation=activation, final=final)
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


def test_without_biases():
    module = torch_encoder(bias=False).eval()
    encoder = encoder_from_torch(module)
    x = torch.randn(2, 5, 16)
    assert_close(encoder(x), module(x), atol=1e-5, rtol=0)
    assert encoder.blocks[0].attention.queries.bias is None


def test_an_encoding_can_be_put_in():
    module = torch_encoder().eval()
    encoder = encoder_from_torch(module, positional=Positional(Sinusoidal(16)))
    x = torch.randn(1, 5, 16)
    assert_close(encoder(x), module(Sinusoidal(16)(x)), atol=1e-5, rtol=0)


def test_the_weights_are_copies_and_the_mode_is_kept():
    module = torch_encoder().eval()
    encoder = encoder_from_torch(module)
    assert not encoder.training
    with torch.no_grad():
        encoder.blocks[0].attention.queries.weight.zero_()
    assert module.layers[0].self_attn.in_proj_weight[:16].ne(0).any()


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


def test_each_weight_keeps_its_dtype():
    module = torch_encoder().bfloat16()
    module.layers[0].norm1.float()
    module.layers[0].norm1.weight.data.fill_(1 + 2**-20)
    block = encoder_from_torch(module).blocks[0]
    assert block.feed_forward_norm.weight.dtype == torch.bfloat16
    assert block.attention_norm.weight.dtype == torch.float32
    assert block.attention_norm.weight.eq(1 + 2**-20).all()


def test_what_a_norm_was_built_without_does_not_learn():
    module = torch_encoder(bias=False, final=True)
    module.norm = nn.LayerNorm(16, elementwise_affine=False)
    encoder = encoder_from_torch(module.eval())
    x = torch.randn(2, 5, 16)
    assert_close(encoder(x), module(x), atol=1e-5, rtol=0)
    still = {name for name, each in encoder.named_parameters() if not each.requires_grad}
    betas = {f"blocks.{i}.{of}_norm.bias" for i in range(3) for of in ("attention", "feed_forward")}
    assert still == betas | {"final_norm.weight", "final_norm.bias"}


def test_a_model_of_which_a_part_trains_is_refused():
    module = torch_encoder().train()
    module.layers[1].self_attn.eval()
    with pytest.raises(ValueError, match=r"evaluation mode \(layers.1.self_attn, .*Call train\(\)"):
        encoder_from_torch(module)


def test_parameters_are_taken_over_one_for_one_and_as_they_are():
    weight = Taken(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="bias: there or here alone"):
        take_over(nn.Linear(3, 2), {"weight": weight})
    with pytest.raises(ValueError, match=r"weight is \(2, 3\) there and \(2, 4\) here"):
        take_over(nn.Linear(4, 2, bias=False), {"weight": weight})


def test_what_cannot_be_taken_over():
    with pytest.raises(TypeError, match=r"module is a Linear; it must be a torch.nn.Transformer"):
        encoder_from_torch(nn.Linear(2, 2))

    class Own(nn.TransformerEncoderLayer):
        pass

    with pytest.raises(TypeError, match=r"A layer is a Own; only torch.nn.TransformerEncoderLayer"):
        encoder_from_torch(nn.TransformerEncoder(Own(16, 4), 1, enable_nested_tensor=False))
    module = torch_encoder()
    module.layers[1].norm1.eps = module.layers[1].norm2.eps = 1e-3
    with pytest.raises(ValueError, match="are of 2 makes"):
        encoder_from_torch(module)
    module = torch_encoder()
    first = module.layers[0].self_attn  # then batch and tokens change places between the layers
    first.batch_first = not first.batch_first
    with pytest.raises(ValueError, match="are of 2 makes"):
        encoder_from_torch(module)

    class Doubled(nn.LayerNorm):
        def forward(self, input):
            return 2 * super().forward(input)

    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 1, Doubled(16), enable_nested_tensor=False)
    with pytest.raises(TypeError, match="norm is a Doubled; only"):
        encoder_from_torch(module)


def test_an_identity_in_the_place_of_a_dropout_drops_nothing():
    module = torch_encoder(dropout=0.0).double()
    module.layers[1].dropout2 = nn.Identity()
    module.layers[2].dropout = nn.Identity()
    x = torch.randn(2, 7, 16, dtype=torch.float64)
    assert_close(encoder_from_torch(module)(x), module(x), atol=1e-12, rtol=0)


def test_a_dropout_by_another_name_is_one():
    class Named(nn.Dropout):
        """A dropout."""

        def __init__(self, p: float):
            super().__init__(p)

        def extra_repr(self) -> str:
            return f"share={self.p}"

    module = torch_encoder(dropout=0.25).double()
    for layer in module.layers:
        layer.dropout1 = deepcopy(Named(0.25))  # as torch's encoder copies its layer
    encoder, x = encoder_from_torch(module), torch.randn(2, 7, 16, dtype=torch.float64)
    assert_close(encoder.eval()(x), module.eval()(x), atol=1e-12, rtol=0)
    assert encoder.blocks[0].attention.dropout == 0.25


class DoubledDropout(nn.Dropout):
    def forward(self, x):
        return 2 * super().forward(x)


class CalledDropout(nn.Dropout):
    def __call__(self, x):
        return 2 * super().__call__(x)


class LastingDropout(nn.Dropout):
    def train(self, mode=True):
        return super().train(True)


class TrainingDropout(nn.Dropout):
    training = property(lambda self: True, lambda self, mode: None)


class HalvedDropout(nn.Dropout):
    p = property(lambda self: 0.05, lambda self, p: None)


class NestedDropout(LastingDropout):
    pass


class Lasting(nn.Module):
    def train(self, mode=True):
        return super().train(True)


class MixedDropout(nn.Dropout, Lasting):
    pass


class HalfLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) / 2


def _with_zero_keys(layer):
    layer.self_attn.add_zero_attn = True


def _with_learned_keys(layer):
    layer.self_attn = nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True)


def _with_own_linear(layer):
    layer.linear2 = HalfLinear(32, 16)


def _with_another_norm(layer):
    layer.norm1 = nn.RMSNorm(16)


def _with_a_hook(layer):
    layer.linear1.register_forward_hook(lambda module, given, out: 2 * out)


def _with_another_forward(layer):
    layer.linear2.forward = torch.tanh


def _with_another_step(layer):
    layer._ff_block = torch.tanh


def _with_two_eps(layer):
    layer.norm2.eps = 0.5


def _with_two_dropouts(layer):
    layer.dropout1.p = 0.5


def _with_an_identity_beside_dropouts(layer):
    layer.dropout2 = nn.Identity()


def _with_another_dropout(layer):
    layer.dropout1 = nn.AlphaDropout(0.1)


def _with_a_dropout_that_doubles(layer):
    layer.dropout = DoubledDropout(0.1)


def _with_a_dropout_that_is_called_otherwise(layer):
    layer.dropout2 = CalledDropout(0.1)


@pytest.mark.parametrize("kind", [
    LastingDropout, TrainingDropout, HalvedDropout, NestedDropout, MixedDropout,
])  # fmt: skip
def test_a_dropout_that_is_more_than_a_name_is_refused(kind):
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    module.layers[0].dropout1 = kind(0.1)
    with pytest.raises(TypeError, match=f"dropout1 of a layer is a {kind.__name__}"):
        encoder_from_torch(module)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_with_a_dropout_that_doubles, "dropout of a layer is a DoubledDropout"),
        (_with_a_dropout_that_is_called_otherwise, "dropout2 of a layer is a CalledDropout"),
        (_with_an_identity_beside_dropouts, r"The dropout of a layer are \(0.1, 0.1, 0.0, 0.1\)"),
        (_with_another_dropout, "dropout1 of a layer is a AlphaDropout"),
        (_with_two_eps, r"The eps of a layer are \(1e-05, 0.5\)"),
        (_with_two_dropouts, "The dropout of a layer are"),
        (_with_zero_keys, "adds keys of its own"),
        (_with_learned_keys, "adds keys of its own"),
        (_with_own_linear, "linear2 of a layer is a HalfLinear"),
        (_with_another_norm, "norm1 of a layer is a RMSNorm"),
        (_with_a_hook, "has forward hooks"),
        (_with_another_forward, "a Linear with a method forward of its own"),
        (_with_another_step, "a TransformerEncoderLayer with a method _ff_block of its own"),
    ],
)
def test_what_weights_do_not_tell_is_refused(change, said):
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for changed in module.layers[::-1]:  # the last of them, and then all alike
        change(changed)
        with pytest.raises((TypeError, ValueError), match=said):
            encoder_from_torch(module)


def test_calls_of_the_module_itself_that_weights_do_not_tell_are_refused():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 1, nn.LayerNorm(16), enable_nested_tensor=False)
    handle = module.register_forward_hook(lambda module, given, out: 2 * out)
    with pytest.raises(ValueError, match="The module has forward hooks"):
        encoder_from_torch(module)
    handle.remove()
    module.norm.forward = torch.tanh
    with pytest.raises(ValueError, match="The module has a LayerNorm with a method forward"):
        encoder_from_torch(module)
    del module.norm.forward
    encoder_from_torch(module)
