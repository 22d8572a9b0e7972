"""Triton's kernels give the bits of the formulas, and fronts call them."""

import mpmath
import pytest
import torch
from benchmarks.accelerator import stand_in
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.operands import OPERATORS, angles, copies, same, tensors
from tests.kernels.test_fronts import DROPPING, FRONTS, wide
from triton import language as tl

from posenc.frequencies import Geometric
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.addition import triton as addition
from posenc.kernels.rotary import triton as rotary
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.sincos import triton as sincos
from posenc.numerics.sincos import SinCos

BEFORE = {(module, name): getattr(module, name) for module, name in stand_in.by_triton()}
NARROW = [torch.float32, torch.bfloat16, torch.float16]
LAUNCHERS = (rotary, "rotate_heads"), (rotary, "rotate"), (addition, "scaled_sum"), (sincos, "fill")


@pytest.fixture(scope="module", autouse=True)
def launched():
    """Whether each launcher that was called took its operands."""
    taken = []

    def watch(run):
        def watched(*given):
            made = run(*given)
            taken.append(made is not None and made is not False)
            return made

        return watched

    watched = {(module, name): watch(getattr(module, name)) for module, name in LAUNCHERS}
    before = stand_in.put(watched)
    yield taken
    stand_in.put(before)


def plain(name: str, given: list) -> list:
    """The same in memory that each kernel takes."""
    alike = torch.contiguous_format
    given = [x.clone(memory_format=alike) if torch.is_tensor(x) else x for x in given]
    if "both" in name:  # of one width
        given[1] = given[0].clone()
        given = [*given[:-2], given[1].clone(), given[-1]] if name.endswith("out") else given
    return given


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_it_gives_the_bits_of_its_formula(launched, name, data):
    operator = OPERATORS[name]
    arguments, simple = data.draw(operator.operands()), data.draw(st.booleans())
    arguments = plain(name, arguments) if simple else arguments
    others, versions = copies(arguments), [x._version for x in tensors(arguments)]
    assert same(operator.by_triton(*arguments), operator.formula(*others))
    assert all(map(same, tensors(arguments), tensors(others)))
    raised = [i for i, x in enumerate(tensors(arguments)) if x._version > versions[i]]
    assert raised == operator.written
    assert launched[-1] or not simple


@pytest.mark.usefixtures("accelerated")
@pytest.mark.parametrize(
    ("run", "shapes"),
    [*FRONTS.values(), *DROPPING.values()],
    ids=[*FRONTS, *(f"{name}, dropped" for name in DROPPING)],
)
def test_fronts_call_them_forward_and_backward(launched, run, shapes):
    some = [wide(*shape).float().double().requires_grad_() for shape in shapes]
    launched.clear()
    made = run(*some)
    grads = torch.autograd.grad(made, some, torch.ones_like(made))
    with torch.no_grad():
        assert same(run(*some), made)
    assert any(launched)
    triton = stand_in.put(BEFORE)
    want = run(*some)
    assert same((made, *grads), (want, *torch.autograd.grad(want, some, torch.ones_like(want))))
    stand_in.put(triton)


def test_a_number_that_is_no_row_makes_its_token_nan():
    places = torch.tensor([0, -1, 5, 2**62])
    x, table = torch.ones(1, 2, 4, 6), angles(5, 2)
    (made,) = rotary.rotate_heads((x,), table, places, RotaryLayout())
    assert made[..., 0, :].isfinite().all()
    assert made[..., 1:, :4].isnan().all()
    assert (made[..., 4:] == 1).all()
    weight, ids = torch.ones(3, 4), torch.tensor([0, 3, -1, 0, 0])
    places = torch.tensor([0, 0, 0, 2, -1])
    made = addition.scaled_sum((weight, ids), torch.ones(2, 4), places, None, 1.0, 1.0, 0, 0)
    assert made[0].tolist() == [2.0] * 4
    assert made[1:].isnan().all()


def table(places, schedule, dtype, factor=1.0):
    made = torch.empty(len(places), 2, len(schedule), dtype=dtype)
    OPERATORS["sincos_"].by_triton(made, places, *schedule.operands, factor, 0)
    return made


def truth(position, turns, factor):
    with mpmath.workprec(400):
        angle = 2 * mpmath.pi * mpmath.mpf(position * turns % 2**TURN_BITS) / 2**TURN_BITS
        return [factor * f(angle) for f in (mpmath.cos, mpmath.sin)]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("factor", [1.0, 1.3465735902799727])
@pytest.mark.parametrize("all_in_doubt", [False, True])
def test_every_value_is_rounded_from_the_truth(oracle, dtype, factor, all_in_doubt, monkeypatch):
    if all_in_doubt:  # so that each is computed by pairs
        monkeypatch.setattr(sincos, "DOUBT", tl.constexpr(0.3))
    far = torch.tensor([0, 1, -1, -5, 10**6, 2**53 + 1, 2**63 - 1, -(2**63)])
    places, schedule = torch.cat((far, torch.randint(-(2**62), 2**62, (5,)))), SinCos(Geometric(10))
    exact = [[truth(int(p), turns, factor) for turns in schedule.turns] for p in places]
    want = [[[oracle.nearest(part, dtype) for part in both] for both in row] for row in exact]
    want = torch.tensor(want, dtype=torch.float64).to(dtype).mT
    assert torch.equal(table(places, schedule, dtype, factor), want)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("function", ["cos", "sin"])
def test_values_next_to_a_midpoint_are_rounded_to_the_right_side(oracle, dtype, function):
    """No float64 settles these: they are within 2^-55 of where the rounding turns."""
    found = list(oracle.next_to_midpoints(dtype, function, 24, seed=1))
    places = torch.tensor([position for position, _, _ in found])
    made = table(places, SinCos(Geometric(64)), dtype)[:, int(function == "sin")]
    for row, (_, column, exact) in enumerate(found):
        assert made[row, column].item() == oracle.nearest(exact, dtype)
