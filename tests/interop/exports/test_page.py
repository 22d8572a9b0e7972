"""The lines of docs/exports.md that need what the documentation's own tests do not: run as told."""

import doctest
import re
from pathlib import Path

import numpy
import pytest
import torch

import posenc
from posenc import Positional, Rotary
from posenc.interop.exports import onnx_program
from posenc.transformer import Encoder

PAGE = (Path(posenc.__file__).parents[2] / "docs" / "exports.md").read_text()
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
REASON = "large, and no part of posenc[test]: pip install {} runs this"


def block(word: str) -> str:
    (found,) = (each for each in BLOCKS if word in each)
    return found


def queries() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    q = torch.randn(2048, 64)
    return {"q": q, "a": q[:, :32].contiguous(), "b": q[:, 32:].contiguous()}


def check(rotated: numpy.ndarray, q: torch.Tensor, table: torch.Tensor) -> None:
    expected = Rotary(64).encode_queries(q[None, None], table)[0, 0]
    assert numpy.allclose(rotated, expected.numpy(), atol=1e-6)


def test_jax_in_two_lines():
    jax = pytest.importorskip("jax", reason=REASON.format("jax"))
    table, given = Rotary(64).table(torch.arange(2048)), queries()
    names = {"jax": jax, "table": table}
    names |= {name: jax.dlpack.from_dlpack(given[name]) for name in "ab"}
    exec(block("jax.dlpack"), names)
    check(numpy.asarray(names["rotated"]), given["q"], table)
    assert numpy.asarray(names["cos"]).tobytes() == table[:, 0].contiguous().numpy().tobytes()


def test_mlx_in_two_lines():
    pytest.importorskip("mlx.core", reason=REASON.format("mlx[cpu]"))
    import mlx

    table, given = Rotary(64).table(torch.arange(2048)), queries()
    names = {"mlx": mlx, "as_numpy": numpy.from_dlpack(table)}
    names |= {name: mlx.core.array(given[name].numpy()) for name in "ab"}
    exec(block("mlx.core"), names)
    check(numpy.array(names["rotated"]), given["q"], table)
    assert numpy.array_equal(numpy.array(names["cos"]), table[:, 0].numpy())


@pytest.mark.compiles
@pytest.mark.slow("six seconds")
def test_onnx_as_told(tmp_path, monkeypatch):
    pytest.importorskip("onnxscript", reason="pip install posenc[test]")
    monkeypatch.chdir(tmp_path)
    names = {"Encoder": Encoder, "Positional": Positional, "Rotary": Rotary}
    exec(block("encoder.onnx"), names | {"onnx_program": onnx_program})
    assert (tmp_path / "encoder.onnx").stat().st_size > 1000
    names = vars(__import__("posenc.interop.exports.onnx", fromlist=["onnx_program"])).copy()
    told = "".join(
        example.source.replace("# doctest: +SKIP", "")
        for example in doctest.DocTestParser().get_examples(onnx_program.__doc__ or "")
    )
    exec(told.replace("[value", "listed = [value"), names)
    assert names["listed"] == ["x", "positions"]
