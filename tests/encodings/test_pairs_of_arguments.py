"""No argument is left aside because another is given: it shows, is refused, or is said to give way.

The battery changes one argument at a time. Here each is changed beside each other one.
"""

from dataclasses import replace
from itertools import permutations

import pytest
import torch
from tests.goldens.encodings import battery

from posenc.testing.shapes import _observed

CASES = {name: case for name, case in battery().items() if len(case.changes) > 1}
GIVES_WAY = {
    ("DINOv3Rotary", "base", "periods"): "periods are given, as the docstring says",
    ("AxialRotary", "base", "form"): "Pixtral's own base is the one that it is changed to",
    ("MultimodalRotary", "sections", "arrangement"): "four pairs are dealt out alike by both",
    ("T5Bias", "max_distance", "bidirectional"): "so few buckets end alike at both distances",
    ("T5Bias", "max_distance", "buckets"): "so few buckets end alike at both distances",
    ("DeBERTa", "max_distance", "buckets"): "so few buckets end alike at both distances",
}
"""Which argument shows nothing beside which other, and why."""


def shows(case, other, one):
    """Whether one argument changes anything beside another; a refusal is as good."""
    beside = {**case.arguments, other: case.changes[other]}
    before = _observed(replace(case, arguments=beside))
    try:
        after = _observed(replace(case, arguments={**beside, one: case.changes[one]}))
    except (ValueError, TypeError, IndexError):
        return True
    alike = zip(before, after, strict=False)
    return len(before) != len(after) or not all(
        x.dtype == y.dtype and x.shape == y.shape and torch.equal(x, y) for x, y in alike
    )


def built(case, name):
    try:
        case.module(**{name: case.changes[name]})
    except (ValueError, TypeError):
        return False
    return True


@pytest.mark.slow("each argument beside each other one")
@pytest.mark.parametrize("name", CASES)
def test_an_argument_shows_beside_each_other_one(name):
    case = CASES[name]
    changes = [each for each in case.changes if built(case, each)]
    silent = {
        (case.build.__name__, one, other)
        for other, one in permutations(changes, 2)
        if not shows(case, other, one)
    }
    assert silent <= GIVES_WAY.keys()
