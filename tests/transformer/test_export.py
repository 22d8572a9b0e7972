"""An exported encoder has a free batch and a free length."""

import numpy
import pytest
import torch
from torch.export import Dim

from posenc import FIRE, KERPLE, ALiBi, Positional, Rotary, Sinusoidal, T5Bias
from posenc.transformer import Encoder

pytestmark = pytest.mark.compiles

ENCODINGS = {
    "none": lambda: {},
    "sinusoidal": lambda: {"positional": Positional(Sinusoidal(16))},
    "rotary": lambda: {"positional": Positional(queries_keys=Rotary(4))},
    "alibi": lambda: {"positional": Positional(scores=ALiBi(4))},
    "t5": lambda: {"positional": Positional(scores=T5Bias(4))},
    "kerple": lambda: {"positional": Positional(scores=KERPLE(4))},
    "fire": lambda: {"positional": Positional(scores=FIRE(4))},
    "window": lambda: {"window": 3},
    "windows": lambda: {"window": [3, None], "positional": Positional(queries_keys=Rotary(4))},
}


@pytest.mark.slow("more of its kind", spares=6)
@pytest.mark.parametrize(("is_causal", "padded"), [(True, True), (False, False)])
@pytest.mark.parametrize("name", ENCODINGS)
@torch.no_grad()
def test_other_sizes_give_what_the_encoder_gives(name, is_causal, padded):
    encoder = Encoder(16, 4, 2, is_causal=is_causal, **ENCODINGS[name]()).eval()

    def given(batch: int, seq: int) -> tuple[tuple[torch.Tensor], dict[str, torch.Tensor]]:
        real = torch.ones(batch, seq, dtype=torch.bool)
        real[0, : seq // 3] = False
        return (torch.randn(batch, seq, 16),), {"padding_mask": real} if padded else {}

    args, named = given(3, 7)
    free = {0: Dim("batch", max=64), 1: Dim("seq", max=4096)}
    free = dict.fromkeys(("x", *named), free)
    program = torch.export.export(encoder, args, named, dynamic_shapes=free, strict=False).module()
    for batch, seq in ((2, 5), (1, 300)):
        args, named = given(batch, seq)
        seen = named.get("padding_mask", ...)
        torch.testing.assert_close(
            program(*args, **named)[seen], encoder(*args, **named)[seen], atol=1e-5, rtol=1e-4
        )


@pytest.mark.slow("five seconds each")
@pytest.mark.parametrize("name", ENCODINGS)
@torch.no_grad()  # with gradients, the writer of ONNX meets strides that it refuses
def test_so_does_a_program_of_onnx(name):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    encoder = Encoder(16, 4, 2, is_causal=True, **ENCODINGS[name]()).eval()
    free = ({0: Dim("batch", max=64), 1: Dim("seq", max=4096)},)
    x = torch.randn(3, 7, 16)
    program = torch.onnx.export(encoder, (x,), dynamo=True, dynamic_shapes=free, verbose=False)
    assert program is not None
    ran = runtime.InferenceSession(
        program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for batch, seq in ((2, 5), (1, 300)):
        x = torch.randn(batch, seq, 16)
        (got,) = ran.run(None, {ran.get_inputs()[0].name: x.numpy()})
        numpy.testing.assert_allclose(got, encoder(x).numpy(), rtol=1e-4, atol=1e-5)
