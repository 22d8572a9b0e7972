"""No false verdict on the public styles: what is right passes, what is wrong is named."""

import copy

import pytest
import torch
from tests.audit.zoo import right, wrong
from tests.audit.zoo.right.added import Annotated
from tests.audit.zoo.right.bias import T5
from tests.audit.zoo.right.rotary import LlamaRotary
from tests.audit.zoo.wrong.added import CountsCalls

from posenc.audit import check

RIGHT, WRONG = right.RIGHT, wrong.WRONG


def test_the_zoo_is_large():
    assert len(RIGHT) >= 40
    assert len(WRONG) >= 60
    assert len({specimen.thing for specimen in WRONG}) == len(WRONG)
    assert len({specimen.name for specimen in WRONG}) == len(WRONG)


@pytest.mark.slow("hundreds of specimens", spares=9)
@pytest.mark.parametrize("specimen", RIGHT, ids=str)
def test_what_is_right_is_not_blamed(specimen):
    report = check(specimen.thing, **specimen.options)
    assert {fault.name for fault in report.faults} == specimen.faults, str(report)
    assert specimen.says in report.identity
    assert report.status == 0, "something essential was asked, and nothing is wrong"


@pytest.mark.slow("hundreds of specimens", spares=9)
@pytest.mark.parametrize("specimen", WRONG, ids=str)
def test_what_is_wrong_is_named(specimen):
    report = check(specimen.thing, **specimen.options)
    assert {fault.name for fault in report.faults} == specimen.faults, str(report)
    assert all(fault.said and fault.remedy for fault in report.faults)
    assert "within 2 " not in report.identity, "what is opposite equals nothing"
    for fault in report.faults:
        compile(fault.reproduction, fault.name, "exec")
        assert 1 < len(fault.reproduction.splitlines()) <= 4
    severities = {fault.severity for fault in report.faults}
    assert report.status == (1 if "wrong" in severities else 0)


@pytest.mark.parametrize("kind", [Annotated, LlamaRotary, CountsCalls, T5])
def test_the_callers_object_stays_as_it_is(kind):
    """Bit by bit: buffers, parameters, attributes, mode, and the state of random numbers."""
    torch.manual_seed(3)
    thing = kind().train()
    before, mode = copy.deepcopy(vars(thing)), [m.training for m in thing.modules()]
    state = torch.get_rng_state()
    check(thing)
    assert torch.equal(torch.get_rng_state(), state)
    assert [m.training for m in thing.modules()] == mode
    assert str(vars(thing)) == str(before)
    for name, tensor in thing.state_dict().items():
        again = dict(before["_buffers"]).get(name)
        assert tensor.dtype == torch.float32
        assert again is None or torch.equal(again, tensor)
