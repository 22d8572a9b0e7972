"""Numbers of an encoding are its own, whatever is set for a process when it is built or asked.

Models are built on the meta device, and with weights in bfloat16 by default. What an encoding
computes then for good must not be computed there, nor in fewer digits.
"""

import decimal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
import torch
from tests.goldens.encodings import battery
from tests.goldens.tables import SCHEDULES
from tests.torch_defaults import default_dtype

from posenc import Rotary
from posenc.numerics.arithmetic import PROFILES
from posenc.positions import Coordinates, consecutive

EVERY = battery()


@contextmanager
def few_decimals() -> Iterator[None]:
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP):
        yield


STATES = {
    "meta": lambda: torch.device("meta"),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float64": lambda: default_dtype(torch.float64),
    "three decimals": few_decimals,
}


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = (one.device, one.dtype, one.shape) == (other.device, other.dtype, other.shape)
    return alike and torch.equal(one, other)


def table(case, module: torch.nn.Module) -> torch.Tensor:
    torch.manual_seed(0)
    return case.subject().of(module).tables(consecutive(6, device="cpu"))


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_every_encoding_is_as_it_is_elsewhere(case, state):
    """Built there, where it owns no weights, and asked there, also with each change it takes."""
    for changes in [{}, *({name: value} for name, value in case.changes.items())]:
        with suppress(ValueError, TypeError):
            module = case.module(**changes)
            with STATES[state]():
                built, found = case.module(**changes), table(case, module)
            assert same(found, table(case, module))
            if not module.state_dict():
                assert same(table(case, built), found)


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_the_same_in_every_arithmetic(name, state):
    asked, positions = 0, torch.tensor([3, 70], device="cpu")
    for arithmetic in ("exact", "float32", "float32-log", *PROFILES):
        with suppress(ValueError):  # of an implementation without such a schedule
            want = Rotary(replace(SCHEDULES[name]), arithmetic=arithmetic).table(positions)
            with STATES[state]():
                made = Rotary(replace(SCHEDULES[name]), arithmetic=arithmetic)
                under = made.table(positions)
            asked += 1
            assert same(made.table(positions), want)
            assert same(under, want)
    assert asked >= 3


@pytest.mark.parametrize("state", STATES)
def test_real_coordinates_of_few_and_of_many(state):
    made = Rotary(8)
    for each in (Coordinates(torch.arange(40).double() / 8 + 0.1), Coordinates(range(40), scale=3)):
        with STATES[state]():
            found = made.table(each)
        assert same(found, made.table(each))
