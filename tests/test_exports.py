"""The public names: all there, all documented, all checked by the contract battery."""

import ast
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import posenc
from posenc import QueryKeyEncoding, ScoreEncoding, TokenEncoding, _names

PLACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)
STUB = Path(posenc.__file__).with_suffix(".pyi")


def encodings() -> list[type]:
    """The finished encodings among the public names."""
    public = [getattr(posenc, name) for name in posenc.__all__]
    return [
        each
        for each in public
        if inspect.isclass(each) and issubclass(each, PLACES) and not inspect.isabstract(each)
    ]


def stated() -> list[tuple[str, str, str]]:
    """What the stub exports: (module, name, name by which it is public), in its order."""
    found = []
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            found += [(f"posenc.{node.module or ''}".rstrip("."), each.name, each.asname)
                      for each in node.names]  # fmt: skip
    return found


def without_own_words(each: object) -> bool:
    """Whether a docstring is none, its parent's, or the signature that a dataclass puts there."""
    doc = inspect.getdoc(each)
    inherited = [inspect.getdoc(base) for base in getattr(each, "__mro__", ())[1:]]
    name = getattr(each, "__name__", "")
    return doc is None or doc in inherited or bool(name and doc.startswith(f"{name}("))


def test_the_stub_is_sorted_and_exports_nothing_twice():
    """The order in which lines are read: modules, then names within each."""
    lines = [line for line in STUB.read_text().splitlines() if line.startswith("from")]
    modules = [module for module, _, _ in stated()]
    assert modules == sorted(modules)
    assert len(set(lines)) == len(lines) == len(posenc.__all__)


@pytest.mark.slow("loads every public name")
def test_every_public_name_is_the_thing_that_the_stub_says():
    """Loaded in a fresh process, one after the other, so that none rides on another's import."""
    code = "import importlib, posenc\n" + "\n".join(
        f"assert posenc.{public} is "
        + (
            f"importlib.import_module('posenc.{name}')"
            if module == "posenc"
            else f"importlib.import_module({module!r}).{name}"
        )
        for module, name, public in stated()
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert sorted(public for _, _, public in stated()) == sorted(posenc.__all__)


def test_public_names_explain_themselves():
    for name in posenc.__all__:
        assert not without_own_words(getattr(posenc, name)), f"{name} has no docstring"


def test_what_has_no_words_of_its_own_is_found():
    """The check above, each time with a planted fault."""

    class Heir(posenc.Rotary):
        pass

    @dataclass
    class Record:
        most: int

    def mute():
        pass

    assert without_own_words(Heir)
    assert without_own_words(Record)
    assert without_own_words(mute)
    assert not without_own_words(posenc.Rotary)


def test_every_encoding_gives_reference_and_example():
    for encoding in encodings():
        doc = inspect.getdoc(encoding)
        assert "Reference:" in doc, encoding
        assert ">>>" in doc, encoding


def test_every_encoding_runs_through_the_battery():
    tests = Path(__file__).parent
    contracts = "".join(
        path.read_text()
        for folder in ("contracts", "encodings")
        for path in (tests / folder).rglob("test_*.py")
    )
    built = set(re.findall(r"Case\(\s*(\w+)", contracts))
    assert {encoding.__name__ for encoding in encodings()} <= built


def test_no_encoding_derives_from_another():
    every = set(encodings())
    assert not [each for each in every if every & set(each.__mro__[1:])]


# Names that people try.

MEANT = {
    "RoPE": "from posenc import Rotary",
    "RotaryEmbedding": "from posenc import Rotary",
    "SinusoidalPositionalEncoding": "from posenc import Sinusoidal",
    "PositionalEncoding": "from posenc import Sinusoidal",
    "T5": "from posenc import T5Bias",
    "Alibi": "from posenc import ALiBi",
    "alibi": "from posenc import ALiBi",
    "Rottary": "from posenc import Rotary",
    "RotaryEmbedings": "from posenc import Rotary",
    "scaled_dot_product_attention": "from posenc import attention",
    "YaRN": "from posenc.frequencies import YaRN",
    "Yarn": "from posenc.frequencies import YaRN",
    "Geometric": "from posenc.frequencies import Geometric",
    "left_padded": "from posenc.positions import left_padded",
    "Encoder": "from posenc.transformer import Encoder",
    "KVCache": "from posenc.transformer import KeyValueCache",
    "llama3": "from posenc.recipes import llama3",
    "rotary_from_config": "from posenc.interop.huggingface import rotary_from_config",
}


@pytest.mark.parametrize("name", MEANT)
def test_a_name_that_people_try_is_told_its_import(name):
    with pytest.raises(AttributeError, match=re.escape(f"Did you mean: {MEANT[name]}?")):
        getattr(posenc, name)
    with pytest.raises(ImportError, match=re.escape(f"no attribute {name!r}. Did you mean: ")):
        exec(f"from posenc import {name}")


@pytest.mark.parametrize("said", sorted({*MEANT.values(), *(
    f"from posenc import {name}" for name in _names.TRIED.values())}))  # fmt: skip
def test_the_import_that_is_told_works(said):
    exec(said)


def test_what_resembles_nothing_is_told_so():
    with pytest.raises(AttributeError, match=r"'posenc' has no attribute 'zzzz'$"):
        posenc.zzzz  # noqa: B018
    assert not hasattr(posenc, "_private")


def test_submodules_that_are_no_public_names_are_imported_all_the_same():
    code = "from posenc import cli, kernels; import posenc.numerics; print(posenc.numerics)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_subpackages_resolve_and_nothing_is_loaded_before():
    code = """
import sys, posenc
print([name for name in ("torch", "posenc._names", "posenc.frequencies") if name in sys.modules])
print(posenc.recipes.llama2.__name__, posenc.frequencies.YaRN.__name__, posenc.interop.torch)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.startswith("[]\nllama2 YaRN <module"), ran.stdout + ran.stderr
