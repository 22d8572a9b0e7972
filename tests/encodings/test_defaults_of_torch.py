"""Numbers of an encoding are its own, whatever torch's default device and dtype when it is built.

Models are built on the meta device, and with weights in bfloat16 by default. What an encoding
computes then for good must not be computed there, nor in fewer digits.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from tests.goldens.encodings import battery
from tests.goldens.tables import SCHEDULES
from tests.torch_defaults import default_dtype

from posenc import Rotary
from posenc.frequencies import Clipped, Geometric, Proportional, TurnsPerUnit
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic import PROFILES
from posenc.positions import Coordinates, consecutive
from posenc.testing import Case

ARITHMETIC = ("exact", "float32", "float32-log", *PROFILES)
EVERY = battery()


DEFAULTS = {
    "meta": lambda: torch.device("meta"),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float16": lambda: default_dtype(torch.float16),
    "float64": lambda: default_dtype(torch.float64),
}


def variants(case: Case) -> Iterator[Callable[[], torch.nn.Module]]:
    """How it is built: as the checks do, and with each change that it takes."""
    for changes in [{}, *({name: value} for name, value in case.changes.items())]:
        with suppress(ValueError, TypeError):
            case.module(**changes)
            yield lambda changes=changes: case.module(**changes)


def owns_nothing(module: torch.nn.Module) -> bool:
    return not list(module.parameters()) and not list(module.buffers())


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = (one.device, one.dtype, one.shape) == (other.device, other.dtype, other.shape)
    return alike and torch.equal(one, other)


def of_seed(case: Case, module: torch.nn.Module) -> torch.Tensor:
    torch.manual_seed(0)
    return case.subject().tables(module, consecutive(6, device="cpu"))


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_every_encoding_is_built_as_it_is_elsewhere(case, default):
    for build in variants(case):
        with DEFAULTS[default]():
            made = build()
        if owns_nothing(made):
            assert same(of_seed(case, made), of_seed(case, build()))


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.filterwarnings("ignore:A distance .* that was never trained")
@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_every_encoding_computes_as_it_does_elsewhere(case, default):
    """Of positions on the CPU the table is there, too."""
    for build in variants(case):
        made = build()
        with DEFAULTS[default]():
            found = of_seed(case, made)
        assert same(found, of_seed(case, made))


def tables(build: Callable[[], Schedule], name: str) -> Callable[[], torch.Tensor]:
    made = Rotary(build(), arithmetic=name)
    return lambda: made.table(torch.tensor([3, 70], device="cpu"))


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("name", [*SCHEDULES, "all of Clipped", "hard Clipped"])
def test_every_schedule_is_the_same_in_every_arithmetic(name, default):
    def build() -> Schedule:
        clipped = {
            "all of Clipped": Clipped(Geometric(128)),
            "hard Clipped": Clipped(Geometric(8), 2, soft=False),
        }
        return clipped.get(name) or replace(SCHEDULES[name])

    asked = 0
    for arithmetic in ARITHMETIC:
        with suppress(ValueError):  # of an implementation without such a schedule
            want = tables(build, arithmetic)()
            with DEFAULTS[default]():
                made = tables(build, arithmetic)
                under = made()
            asked += 1
            assert same(made(), want)
            assert same(under, want)
    assert asked >= 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "schedule",
    [Clipped(Geometric(128)), TurnsPerUnit((0.1, 3)), Proportional(8, 0.5)],
    ids=lambda schedule: type(schedule).__name__,
)
def test_float32_is_float32(schedule, dtype):
    want = schedule.float32("float32")
    with default_dtype(dtype):
        assert same(schedule.float32("float32"), want)
    assert want.dtype == torch.float32


@pytest.mark.parametrize("default", DEFAULTS)
def test_real_coordinates_of_few_and_of_many(default):
    coordinates = Coordinates(torch.arange(40, dtype=torch.float64) / 8 + 0.1)
    whole = Coordinates(torch.arange(40), scale=3)
    made = Rotary(8)
    for each in (coordinates, whole):
        with DEFAULTS[default]():
            found = made.table(each)
        assert same(found, made.table(each))
