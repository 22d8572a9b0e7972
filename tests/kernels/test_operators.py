"""Every operator gives the bits of its formula, or refuses and writes nothing."""

import re
from contextlib import suppress
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.operands import OPERATORS, WRITING, angles, copies, same, tensors
from torch import Tensor
from torch.library import opcheck

from posenc.kernels.addition.front import scaled_sum
from posenc.kernels.library import schemas
from posenc.kernels.operators import ERRORS, NATIVE
from posenc.kernels.rotary.front import RotaryLayout, rotate_heads

compiled = pytest.mark.skipif(not NATIVE, reason="no native library was built")
each = pytest.mark.parametrize("name", OPERATORS)
each_that_writes = pytest.mark.parametrize("name", WRITING)


def example(name: str, **narrowed) -> list:
    """One sample of an operator's operands, each time the same."""
    found = []

    @settings(max_examples=9, database=None, derandomize=True)
    @given(OPERATORS[name].operands(**narrowed))
    def take(arguments):
        found.append(arguments)

    take()
    return found[-1]


def test_every_operator_has_samples():
    assert {schema.split("(")[0] for schema in schemas()} == set(OPERATORS)


@each
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_gives_the_bits_of_its_formula_and_raises_versions(name, data):
    operator = OPERATORS[name]
    given = data.draw(operator.operands())
    others, versions = copies(given), [x._version for x in tensors(given)]
    made, want = operator.call(*given), operator.formula(*others)
    assert same(made, want)
    assert all(x.is_contiguous() for x in ([made] if isinstance(made, Tensor) else made or ()))
    assert all(map(same, tensors(given), tensors(others)))
    raised = [i for i, x in enumerate(tensors(given)) if x._version > versions[i]]
    assert raised == operator.written


@each
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_torch_finds_nothing_wrong(name, data):
    opcheck(OPERATORS[name].call, tuple(data.draw(OPERATORS[name].operands())))


# What is refused.


def refused(name: str, given: list, kind: str = "|".join(ERRORS)) -> None:
    """An operator raises, in words that name an error of Python, and writes nothing."""
    before = [(x.clone(), x._version) for x in tensors(given) if x.untyped_storage().size()]
    with pytest.raises(RuntimeError) as caught:
        OPERATORS[name].call(*given)
    assert re.match(rf"({kind}): \w", str(caught.value))
    after = [x for x in tensors(given) if x.untyped_storage().size()]
    for x, (values, version) in zip(after, before, strict=True):
        assert x._version == version or kind == "RuntimeError"  # of queries, where keys are
        assert same(x, values)


@compiled
@pytest.mark.parametrize("name", [name for name in OPERATORS if "at" in name or "embed" in name])
@pytest.mark.parametrize("wrong", [-1, 20, 2**62])
def test_a_number_that_is_no_row_is_refused(name, wrong):
    given = example(name, dtype=st.just(torch.float32))
    for i, x in enumerate(given):
        if isinstance(x, Tensor) and x.dtype is torch.int64:
            numbers = x.flatten().clone()
            numbers[-1] = wrong
            refused(name, [*given[:i], numbers.view(x.shape), *given[i + 1 :]], "IndexError")


X, TABLE, PLACES = torch.randn(2, 3, 5, 6), angles(5, 3), torch.arange(5)
ROWS, IDS, TURNS = torch.randn(5, 6), torch.zeros(2, 5).long(), torch.zeros(3, 3).long()
RADIANS, ROOM = torch.zeros(3).double(), torch.zeros(5, 2, 3)
MISFITS = {
    "two axes": ("rotary", (X[0, 0], TABLE)),
    "another length": ("rotary", (X[:, :, :3], TABLE)),
    "too narrow": ("rotary", (X[..., :4], TABLE)),
    "a wide table": ("rotary", (X, TABLE.double())),
    "keys too narrow": ("rotary_both_", (X.clone(), X[..., :4].clone(), TABLE)),
    "fewer positions": ("rotary_at", (X, TABLE, PLACES[:4])),
    "many tables": ("rotary_at", (X, TABLE[None], PLACES)),
    "other sines": ("rotary_by", (X, TABLE[:, 0], TABLE[:1, 1])),
    "more rows": ("add", (X[:, :, :1], ROWS)),
    "another width": ("add", (X, ROWS[:, :1])),
    "more positions": ("add_at", (X, ROWS, torch.arange(6) % 5)),
    "a flat weight": ("embed", (ROWS[0], IDS)),
    "one sine": ("sincos_", (ROOM[:, :1], PLACES, TURNS, RADIANS)),
}


@compiled
@pytest.mark.parametrize(("name", "given"), MISFITS.values(), ids=MISFITS)
def test_shapes_and_dtypes_that_do_not_fit_are_refused(name, given):
    rest = {"rotary": [4], "sincos": [1.0, 0]}.get(name.split("_")[0], [1.0, 1.0, 0, 0])
    refused(name, [*given, *rest], "ValueError|TypeError")


# Where memory is shared.


def anywhere(rng: Random, room: Tensor, x: Tensor) -> Tensor:
    """Numbers of a tensor somewhere in a room, its axes in any order, with gaps or not."""
    steps, step = [0] * x.ndim, 1
    for axis in rng.sample(range(x.ndim - 1), x.ndim - 1) if rng.random() < 0.3 else range(x.ndim):
        steps[axis - 1], step = step, max(step * x.shape[axis - 1] + rng.choice([-1, 0, 0, 1]), 1)
    last = sum((size - 1) * step for size, step in zip(x.shape, steps, strict=True))
    return room.as_strided(x.shape, steps, rng.randrange(max(len(room) - last, 1)))


@compiled
@pytest.mark.parametrize("name", [name for name in WRITING if name != "sincos_"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_operands_anywhere_in_one_buffer_are_right_or_refused(name, data):
    """Never wrong: most of these overlap in some way that nobody thought of."""
    operator, rng = OPERATORS[name], Random(data.draw(st.integers(0, 2**32)))
    given = data.draw(operator.operands(dtype=st.just(torch.float64)))
    floats = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.is_floating_point()]
    room = torch.randn(2 * sum(given[i].numel() for i in floats) + 2000, dtype=torch.float64)
    for i in floats:
        given[i] = anywhere(rng, room, given[i])
    others, before = copies(given), room.clone()
    operator.formula(*others)
    with suppress(RuntimeError):
        operator.call(*given)
        for i in operator.written:
            assert same(given[i], others[i])
            given[i].copy_(torch.zeros(()))
            before.as_strided(given[i].shape, given[i].stride(), given[i].storage_offset()).zero_()
    assert same(room, before)  # nothing else was written


def test_slices_of_one_buffer_are_rotated_in_place():
    """Queries, keys and values of one projection, whichever way it is laid out."""
    for axis in (1, 2):
        joined, layout = torch.randn(2, 7, 7, 6), RotaryLayout(heads_first=axis == 1)
        q, k, v = joined.split((4, 2, 1), axis)
        table = angles(7, 3)
        want = [*rotate_heads((q, k), table, None, layout), v.clone()]
        rotate_heads(parts := (q, k), table, None, layout, parts)
        assert same(joined, torch.cat(want, axis))


def test_nothing_is_done_to_nothing():
    for shape in ((0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)):
        q, k = torch.empty(shape), torch.randn(1, 2, shape[2], 4)
        for contents in ((q,), (q, k) if shape[0] else (q, q)):
            made = rotate_heads(contents, angles(shape[2], 2), None, RotaryLayout())
            assert [x.shape for x in made] == [x.shape for x in contents]
        assert scaled_sum(q, torch.randn(shape[2], 4)).shape == shape
    assert scaled_sum(torch.empty(3, 0), torch.empty(3, 0)).shape == (3, 0)
