"""The public names: there, documented, checked by the contract battery, told where missed."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import posenc
from posenc import QueryKeyEncoding, ScoreEncoding, TokenEncoding, _names

PLACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)
TESTS = Path(__file__).parent


def test_public_names_are_there_and_documented_and_encodings_are_checked():
    folders = ("contracts", "encodings")
    names = [name for folder in folders for name in (TESTS / folder).rglob("*.py")]
    checked = "".join(path.read_text() for path in names)
    for name in posenc.__all__:
        public = getattr(posenc, name)
        assert inspect.getdoc(public), name
        finished = inspect.isclass(public) and not inspect.isabstract(public)
        if finished and issubclass(public, PLACES):
            doc = public.__doc__ or ""
            assert "Reference:" in doc, name
            assert ">>>" in doc, name
            assert re.search(rf"\b{name}\b", checked), name


MEANT = {
    "RoPE": "from posenc import Rotary",
    "SinusoidalPositionalEncoding": "from posenc import Sinusoidal",
    "T5": "from posenc import T5Bias",
    "alibi": "from posenc import ALiBi",
    "Rottary": "from posenc import Rotary",
    "RotaryEmbedings": "from posenc import Rotary",
    "Yarn": "from posenc.frequencies import YaRN",
    "left_padded": "from posenc.positions import left_padded",
    "KVCache": "from posenc.transformer import KeyValueCache",
    "llama3": "from posenc.recipes import llama3",
    "check": "from posenc.audit import check",
    "rotary_from_config": "from posenc.interop.huggingface import rotary_from_config",
}


@pytest.mark.parametrize("name", MEANT)
def test_a_name_that_people_try_is_told_its_import(name):
    with pytest.raises(AttributeError, match=re.escape(f"Did you mean: {MEANT[name]}?")):
        getattr(posenc, name)
    with pytest.raises(ImportError, match=re.escape(f"no attribute {name!r}. Did you mean: ")):
        exec(f"from posenc import {name}")
    exec(MEANT[name])


def test_names_of_other_packages_lead_to_public_ones():
    assert set(_names.TRIED.values()) <= set(posenc.__all__)
    with pytest.raises(AttributeError, match=r"'posenc' has no attribute 'zzzz'$"):
        posenc.zzzz  # noqa: B018


def test_subpackages_resolve_and_nothing_is_loaded_before():
    code = """
import sys, posenc
print([name for name in ("torch", "posenc._names", "posenc.frequencies") if name in sys.modules])
from posenc import cli, kernels
import posenc.numerics
print(posenc.recipes.llama2.__name__, posenc.frequencies.YaRN.__name__, posenc.interop.torch)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.startswith("[]\nllama2 YaRN <module"), ran.stdout + ran.stderr
