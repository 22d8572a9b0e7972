"""The public names: all there, all documented, all checked by the contract battery."""

import inspect
from pathlib import Path

import torch

import posenc
from posenc import QueryKeyEncoding, ScoreEncoding, TokenEncoding

PLACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)


def encodings() -> list[type]:
    """The finished encodings among the public names."""
    public = [getattr(posenc, name) for name in posenc.__all__]
    return [
        each
        for each in public
        if inspect.isclass(each) and issubclass(each, PLACES) and not inspect.isabstract(each)
    ]


def test_all_is_sorted_and_true():
    assert posenc.__all__ == sorted(posenc.__all__)
    assert all(hasattr(posenc, name) for name in posenc.__all__)


def test_public_names_explain_themselves():
    for name in posenc.__all__:
        assert inspect.getdoc(getattr(posenc, name)), f"{name} has no docstring"


def test_every_encoding_gives_reference_and_example():
    for encoding in encodings():
        doc = inspect.getdoc(encoding)
        assert "Reference:" in doc, encoding
        assert ">>>" in doc, encoding


def test_every_encoding_runs_through_the_battery():
    contracts = "".join(
        path.read_text() for path in (Path(__file__).parent / "contracts").glob("test_*.py")
    )
    for encoding in encodings():
        assert f"Case({encoding.__name__}" in "".join(contracts.split()).replace(
            "Case(\n", "Case("
        ), f"{encoding.__name__} has no Case in tests/contracts"


def test_nothing_but_the_interfaces_is_subclassed():
    for encoding in encodings():
        parents = [base for base in encoding.__mro__[1:] if issubclass(base, torch.nn.Module)]
        assert all(
            parent.__module__ in ("posenc.encodings.base", "torch.nn.modules.module")
            for parent in parents
        ), encoding
