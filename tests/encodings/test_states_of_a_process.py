"""Tables depend on nothing that is set for a whole process."""

import decimal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from tests.goldens.encodings import battery
from tests.torch_defaults import default_dtype

from posenc.positions import consecutive
from posenc.testing import Case


@contextmanager
def few_decimals() -> Iterator[None]:
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP):
        yield


STATES = {
    "float16 by default": lambda: default_dtype(torch.float16),
    "float64 by default": lambda: default_dtype(torch.float64),
    "three decimals": few_decimals,
}


def tables(case: Case, module: torch.nn.Module) -> list[torch.Tensor]:
    subject, here = case.subject(), consecutive(7)
    made = [subject.tables(module, here, dtype) for dtype in (torch.float32, torch.float64)]
    return [table.detach() for table in made]


@pytest.mark.parametrize("state", STATES)
def test_a_table_is_the_same_in_any_state(state):
    for name, case in battery().items():
        module = case.module()
        want = tables(case, module)
        with STATES[state]():
            built = case.module().float()
            built.load_state_dict(module.state_dict())
            found = tables(case, built)
        for one, other in zip(found, want, strict=True):
            assert one.dtype == other.dtype, name
            assert torch.equal(one, other), name
