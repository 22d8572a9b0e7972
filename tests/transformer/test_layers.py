"""An encoder whose layers differ in their encodings."""

import pytest
import torch
from torch.testing import assert_close

from posenc import ALiBi, Positional, Rotary, Sinusoidal
from posenc.frequencies import Geometric
from posenc.transformer import Encoder, KeyValueCache


def local_and_global() -> tuple[Positional, ...]:
    near = Positional(queries_keys=Rotary(4))
    return near, Positional(queries_keys=Rotary(Geometric(4, 1e6))), Positional(), near


def mixed() -> tuple[Positional, ...]:
    """Tokens in the first, then one of each other place, then none."""
    first = Positional(Sinusoidal(16))
    return first, Positional(scores=ALiBi(4)), Positional(queries_keys=Rotary(4)), first


@pytest.fixture(params=[local_and_global, mixed], ids=["rotations", "mixed"])
def layers(request):
    return request.param()


def encoder_of(positional, depth=4, **arguments):
    return Encoder(16, 4, depth, positional=positional, **arguments).double().eval()


def test_each_layer_has_its_own(layers):
    """Against encoders of one layer each, run one after the other."""
    torch.manual_seed(1)
    encoder = encoder_of(layers, is_causal=True)
    x = y = torch.randn(2, 6, 16, dtype=torch.float64)
    for index, layer in enumerate(layers):
        single = layer if not index else Positional((), layer.queries_keys, layer.scores)
        alone = encoder_of(single, depth=1, is_causal=True)
        alone.blocks[0].load_state_dict(encoder.blocks[index].state_dict())
        y = alone(y)
    assert_close(encoder(x), y, atol=1e-12, rtol=0)
    assert_close(encoder.stages(x).output, y, atol=1e-12, rtol=0)
    cache = KeyValueCache()
    steps = [encoder(x[:, i : i + 1], cache=cache) for i in range(6)]
    assert_close(torch.cat(steps, 1), y, atol=1e-12, rtol=0)


def test_a_table_is_kept_once_for_all_layers_that_share_it():
    near, far, none, _ = layers = local_and_global()
    encoder = encoder_of(layers)
    encoder(torch.randn(1, 5, 16, dtype=torch.float64))
    assert {encoding for encoding, _, _ in encoder.tables.kept} == {
        near.queries_keys[0],
        far.queries_keys[0],
    }
    assert encoder.layers[3] is encoder.layers[0] is near
    assert encoder.layers[2] is none


def test_another_encoding_can_be_put_into_a_finished_encoder():
    torch.manual_seed(1)
    longer = Positional(queries_keys=Rotary(Geometric(4, 1e6)))
    wanted = encoder_of(longer)
    torch.manual_seed(1)
    encoder, x = encoder_of(Positional(queries_keys=Rotary(4))), torch.randn(1, 9, 16).double()
    before = encoder(x)
    encoder.positional = longer
    assert torch.equal(encoder(x), wanted(x))
    assert not torch.equal(encoder(x), before)


@pytest.mark.parametrize(
    ("positional", "error", "told"),
    [
        ((Positional(),) * 3, ValueError, "has 3 layers; the encoder has depth 4"),
        ((*(Positional(),) * 3, Positional(Sinusoidal(16))), ValueError, "Layer 3 has encodings"),
        (ALiBi(4), TypeError, r"positional is ALiBi; pass Positional\(scores=\.\.\.\)"),
    ],
)
def test_what_does_not_fit_is_refused(positional, error, told):
    with pytest.raises(error, match=told):
        encoder_of(positional)
