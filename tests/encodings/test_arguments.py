"""Constructors check sizes and numbers once, and say which argument is wrong."""

import importlib
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

from posenc import Shaw
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


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert Shaw(np.int64(2), np.int32(8), np.int64(3)).keys.shape == (7, 8)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (lambda: check_whole(heads=0), "heads is 0; it must be a whole number from 1 on"),
        (lambda: check_whole(heads=True), "heads is True; it must be a whole number"),
        (lambda: check_number(std=math.nan), "std is nan; it must be a finite number"),
        (lambda: check_positive_number(c=0), "c is 0; it must be a finite number above 0"),
        (lambda: check_probability(p=1.5), "p is 1.5; it must be a probability"),
        (lambda: check_numbers(slopes=[0.5, math.inf]), "slopes is [0.5, inf]; it must be a row"),
        (lambda: check_choice(("a", "b", "c"), x="d"), "x is 'd'; it must be 'a', 'b' or 'c'"),
        (lambda: check_flag(bias="no"), "bias is 'no'; it must be True or False"),
    ],
)
def test_an_error_says_what_came_and_what_was_expected(check, text):
    with pytest.raises(ValueError, match="must be") as error:
        check()
    assert text in str(error.value)
