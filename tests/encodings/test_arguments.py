"""Constructors check sizes and numbers once, and say which argument is wrong."""

import importlib
import inspect
import math
from pathlib import Path

import pytest

from posenc.arguments import (
    check_choice,
    check_flag,
    check_number,
    check_numbers,
    check_positive_number,
    check_probability,
    check_whole,
)

CLASSES = {
    case.build: dict(case.arguments)
    for file in sorted((Path(__file__).parents[1] / "contracts").glob("test_*.py"))
    for case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.values()
    if inspect.isclass(case.build)
}
SIZES = {"dim", "head_dim", "heads", "hidden", "kv_heads", "max_len", "max_positions"}


@pytest.mark.parametrize("build", CLASSES)
def test_sizes_are_whole_and_positive(build):
    for name in SIZES & set(inspect.signature(build).parameters):
        for value in (0, -1, 1.5):
            with pytest.raises((TypeError, ValueError)):
                build(**CLASSES[build] | {name: value})


@pytest.mark.parametrize(
    ("check", "noun"),
    [
        (lambda: check_whole(heads=True), "heads is True"),
        (lambda: check_number(std=math.nan), "std is nan"),
        (lambda: check_positive_number(c=0), "c is 0"),
        (lambda: check_probability(p=1.5), "probability"),
        (lambda: check_numbers(slopes=[0.5, math.inf]), "inf"),
        (lambda: check_choice(("a", "b", "c"), x="d"), "'a', 'b' or 'c'"),
        (lambda: check_flag(bias="no"), "True or False"),
    ],
)
def test_an_error_says_what_came_and_what_was_expected(check, noun):
    with pytest.raises(ValueError, match=noun):
        check()
