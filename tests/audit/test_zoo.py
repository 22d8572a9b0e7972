"""No false verdict on the public styles: what is right passes, what is wrong is named."""

import copy

import pytest
import torch
from tests.audit.zoo.right import RIGHT
from tests.audit.zoo.right.added import Annotated
from tests.audit.zoo.right.bias import T5
from tests.audit.zoo.right.rotary import LlamaRotary
from tests.audit.zoo.wrong import WRONG
from tests.audit.zoo.wrong.added import CountsCalls

from posenc.audit import check

SLOW = pytest.mark.slow("hundreds of specimens", spares=9)


def test_the_zoo_is_large():
    assert len(RIGHT) >= 40
    assert len({specimen.name for specimen in WRONG}) == len(WRONG) >= 60


@SLOW
@pytest.mark.parametrize("specimen", [*RIGHT, *WRONG], ids=str)
def test_verdict(specimen):
    report = check(specimen.thing, **specimen.options)
    assert {fault.name for fault in report.faults} == specimen.faults, str(report)
    assert specimen.says in report.identity
    assert "within 2 " not in report.identity, "what is opposite equals nothing"
    wrong = specimen in WRONG and "wrong" in {fault.severity for fault in report.faults}
    assert report.status == wrong, "something essential was asked; what is lossy is not wrong"
    for fault in report.faults:
        assert fault.said
        assert fault.remedy
        compile(fault.reproduction, fault.name, "exec")
        assert 1 < len(fault.reproduction.splitlines()) <= 4


@pytest.mark.parametrize("kind", [Annotated, LlamaRotary, CountsCalls, T5])
def test_the_callers_object_stays_as_it_is(kind):
    """Bit by bit: buffers, parameters, attributes, mode, and the state of random numbers."""
    torch.manual_seed(3)
    thing = kind().train()
    before, mode = copy.deepcopy(vars(thing)), [m.training for m in thing.modules()]
    kept, state = copy.deepcopy(thing.state_dict()), torch.get_rng_state()
    check(thing)
    assert torch.equal(torch.get_rng_state(), state)
    assert [m.training for m in thing.modules()] == mode
    assert str(vars(thing)) == str(before)
    torch.testing.assert_close(thing.state_dict(), kept, rtol=0, atol=0)
