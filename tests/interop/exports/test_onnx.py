"""ONNX programs, run by onnxruntime: equal to the module, at any length, and refused beyond."""

import numpy
import pytest
import torch

from posenc import KERPLE, ALiBi, Positional, Rotary, Sinusoidal
from posenc.interop.exports import onnx_program
from posenc.transformer import Encoder

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install posenc[test]")
pytest.importorskip("onnxscript", reason="pip install posenc[test]")

# torch.onnx.export traces as torch.export does.
pytestmark = pytest.mark.compiles

LONGEST = 50


def session(module, **options):
    onnxruntime.set_default_logger_severity(4)  # refusals are logged besides being raised
    program = onnx_program(module, longest=LONGEST, **options)
    serialized = program.model_proto.SerializeToString()
    return onnxruntime.InferenceSession(serialized, providers=["CPUExecutionProvider"]), program


def check(ran, module, inputs, expected):
    """The program gives what the module gives, and refuses every other position."""
    arrays = {name: x.numpy() for name, x in inputs.items()}
    for got, wanted in zip(ran.run(None, arrays), expected, strict=True):
        assert numpy.allclose(got, wanted.detach().numpy(), rtol=1e-6, atol=1e-6)
    for name in arrays:
        if "positions" in name:
            for position in (-1, LONGEST, -LONGEST, 2**40):
                bad = arrays[name].copy()
                bad[0, 1] = position
                with pytest.raises(Exception, match=r"indices|index"):
                    ran.run(None, arrays | {name: bad})


@pytest.fixture
def positions():
    torch.manual_seed(0)
    return torch.stack([torch.randperm(LONGEST)[:7] for _ in range(3)])


ROTARIES = {
    "half": ({"frequencies": 8}, "basic"),
    "operator": ({"frequencies": 8}, "RotaryEmbedding"),
    "operator, partial and interleaved": (
        {"frequencies": 8, "head_dim": 12, "pairing": "interleaved"}, "RotaryEmbedding",
    ),
}  # fmt: skip


def rest_is_slow(names, quick):
    mark = pytest.mark.slow("two to four seconds each")
    return [pytest.param(name, marks=() if name == quick else mark) for name in names]


@pytest.mark.parametrize("name", rest_is_slow(ROTARIES, "operator, partial and interleaved"))
def test_rotary(name, positions):
    arguments, operator = ROTARIES[name]
    rotary = Rotary(**arguments)
    ran, program = session(rotary, operator=operator, heads=(4, 2))
    q, k = torch.randn(3, 4, 7, rotary.head_dim), torch.randn(3, 2, 7, rotary.head_dim)
    check(ran, rotary, {"q": q, "k": k, "positions": positions}, rotary(q, k, positions))
    used = {node.op_type for node in program.model.graph}
    assert ("RotaryEmbedding" in used) == (operator == "RotaryEmbedding")
    assert program.model.metadata_props["posenc.longest"] == str(LONGEST)
    assert program.model.metadata_props["posenc.module"] == repr(rotary)


@pytest.mark.slow("two seconds")
def test_sinusoidal(positions):
    encoding, x = Sinusoidal(16), torch.randn(3, 7, 16)
    ran, _ = session(encoding)
    check(ran, encoding, {"x": x, "positions": positions}, [encoding(x, positions)])


@pytest.mark.slow("two seconds")
def test_alibi(positions):
    encoding, some = ALiBi(4), positions[:, :5].contiguous()
    ran, _ = session(encoding)
    expected = [encoding.table(positions, some)]
    check(ran, encoding, {"q_positions": positions, "k_positions": some}, expected)


ENCODERS = {
    "rotary": ({"queries_keys": Rotary(8)}, {"is_causal": True}),
    "alibi": ({"scores": ALiBi(4)}, {"is_causal": True, "window": 3}),
    "sinusoidal": ({"tokens": Sinusoidal(32)}, {}),
    "all three": (
        {"tokens": Sinusoidal(32), "queries_keys": Rotary(8), "scores": ALiBi(4)},
        {"norm": "pre", "kv_heads": 2},
    ),
}


@pytest.mark.parametrize("name", rest_is_slow(ENCODERS, "rotary"))
def test_a_whole_encoder(name, positions):
    places, options = ENCODERS[name]
    torch.manual_seed(1)
    depth = 1 if name == "rotary" else 2
    encoder = Encoder(32, 4, depth, positional=Positional(**places), **options)
    tables = encoder.tables
    ran, _ = session(encoder)
    assert encoder.tables is tables
    assert encoder.training
    x, positions = torch.randn(3, 7, 32), positions.sort(-1).values
    with torch.no_grad():
        expected = encoder.eval()(x, positions)
    check(ran, encoder, {"x": x, "positions": positions}, [expected])
    alone = ran.run(None, {"x": x[:1, :2].numpy(), "positions": positions[:1, :2].numpy()})
    with torch.no_grad():
        assert numpy.allclose(alone[0], encoder(x[:1, :2], positions[:1, :2]).numpy(), atol=1e-6)


ROTARY = "RotaryEmbedding"
REFUSED = [
    (KERPLE(4), {}, "KERPLE"),
    (Encoder(32, 4, 1, positional=Positional(scores=KERPLE(4))), {}, "KERPLE"),
    (Rotary(8, head_dim=16, rotated="suffix"), {"operator": ROTARY}, "last"),
]


@pytest.mark.parametrize(("module", "options", "noun"), REFUSED)
def test_what_cannot_be_stored_is_refused(module, options, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        onnx_program(module, **{"longest": 8} | options)
