"""The lines of docs/exports.md that need what the documentation's own tests do not: run as told."""

import doctest
import re
from pathlib import Path

import pytest

import posenc
from posenc import Positional, Rotary
from posenc.interop.exports import onnx_program
from posenc.transformer import Encoder

PAGE = (Path(posenc.__file__).parents[2] / "docs" / "exports.md").read_text()
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)


def block(word: str) -> str:
    (found,) = (each for each in BLOCKS if word in each)
    return found


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
