"""Every method of every encoding says so where it is given a list or an array for a tensor."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from posenc import Rotary
from posenc.encodings.tensors import METHODS, TENSORS

CONTRACTS = Path(__file__).parents[1] / "contracts"
CASES = {
    name: case
    for file in sorted(CONTRACTS.glob("test_*.py"))
    for name, case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.items()
}
NO_TENSORS = [[[1.0, 2.0]], np.ones((2, 2), np.float32), 1.0]
PAIR = ("encode_both", "out")


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_tensor_is_told(name):
    module = CASES[name].module()
    for method in METHODS:
        bound = getattr(module, method, None)
        asked = [] if bound is None else list(inspect.signature(bound).parameters.values())
        for each in (one for one in asked if one.name in TENSORS):
            called = type(module).__name__ + ("" if method == "forward" else rf"\.{method}")
            for value in (*NO_TENSORS, *(() if each.default is None else (None,))):
                given = {one.name: torch.zeros(1) for one in asked if one.default is one.empty}
                kind = "None" if value is None else rf"a {type(value).__name__}"
                takes = "two tensors" if (method, each.name) == PAIR else "a tensor"
                told = rf"^{each.name} is {kind}; {called} takes {takes}\. Pass "
                with pytest.raises(TypeError, match=told):
                    bound(**given | {each.name: value})
                before = [one.name for one in asked[: asked.index(each)]]
                if each.kind is each.KEYWORD_ONLY:
                    continue
                with pytest.raises(TypeError, match=told):  # the same by place
                    bound(*(torch.zeros(1) for _ in before), value)


def test_what_is_missing_is_told_by_python():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'table'"):
        Rotary(4).encode_keys(torch.zeros(1, 1, 4))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_of_both_go_to_two_tensors(count):
    q = torch.randn(1, 1, 2, 4)
    rotary, table = Rotary(4), Rotary(4).table([0, 1])
    with pytest.raises(TypeError, match=r"out is a tuple; Rotary\.encode_both takes two tensors"):
        rotary.encode_both(q, q, table, out=(torch.empty_like(q),) * count)
    with pytest.raises(TypeError, match=r"out is a Tensor; Rotary\.encode_both takes two tensors"):
        rotary.encode_both(q, q, table, out=torch.stack((q, q)))
    here = (torch.empty_like(q), torch.empty_like(q))
    made = rotary.encode_both(q, q, table, out=here)
    assert all(one is other for one, other in zip(made, here, strict=True))
