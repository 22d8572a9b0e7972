"""Parameters are floating numbers: no other dtype is taken at any door, and none is cut."""

import importlib
import inspect
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from posenc import FIRE, PEG, Learned, T5Bias
from posenc.encodings.base import FixedOnceBuilt
from posenc.encodings.scores.kerple import KERPLEWeight

CONTRACTS = Path(__file__).parents[1] / "contracts"
CASES = {
    name: case
    for file in sorted(CONTRACTS.glob("test_*.py"))
    for name, case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.items()
    if inspect.isclass(case.build) and "dtype" in inspect.signature(case.build).parameters
}
WRONG = [torch.complex64, torch.complex32, torch.int64, torch.bool, torch.float8_e4m3fn]
WRONG += ["float32", float, [], 1]


def with_dtype(kind: type = FixedOnceBuilt) -> set[type]:
    """Every encoding of ours whose constructor takes a dtype."""
    found = set().union(*(with_dtype(each) for each in kind.__subclasses__()))
    ours = kind.__module__.startswith("posenc.")
    return found | ({kind} if ours and "dtype" in inspect.signature(kind).parameters else set())


def test_every_encoding_with_a_dtype_is_asked():
    assert {case.build for case in CASES.values()} == with_dtype()
    assert len(with_dtype()) >= 35


@pytest.mark.parametrize("name", CASES)
def test_a_dtype_that_would_cut_parameters_is_refused(name):
    for dtype in WRONG:
        with pytest.raises(TypeError, match=r"dtype is .*; parameters are float16.*Pass one of"):
            CASES[name].module(dtype=dtype)
    held = {each.dtype for each in CASES[name].module(dtype=torch.float64).parameters()}
    assert held == {torch.float64}


@pytest.mark.parametrize("name", CASES)
def test_no_cast_makes_them_complex(name):
    """Neither its own nor that of a model around it; submodules count as well."""
    whole = nn.Sequential(CASES[name].module())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TypeError, match=r"was cast to torch\.complex64.*computes with reals"):
            whole.to(torch.complex64)


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_no_complex_parameter_takes_the_place_of_a_real_one():
    bias = T5Bias(2)
    complex_weight = torch.zeros_like(bias.weight, dtype=torch.complex64)
    with pytest.raises(TypeError, match=r"weight is set to torch\.complex64; T5Bias computes"):
        bias.weight = nn.Parameter(complex_weight)
    for assign, told in ((True, "weight is set to"), (False, "weight comes as")):
        with pytest.raises(RuntimeError, match=f"{told} torch.complex64; T5Bias computes"):
            bias.load_state_dict({"weight": complex_weight}, assign=assign)
    inside = PEG(4)  # whose parameters are those of a convolution
    state = {name: each.to(torch.complex64) for name, each in inside.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"comes as torch\.complex64; PEG computes"):
        inside.load_state_dict(state)
    assert bias.weight.dtype == torch.float32


def test_the_wrapped_constructors_say_what_they_take():
    for kind in (FIRE, Learned, KERPLEWeight):
        parameters = list(inspect.signature(kind).parameters.values())
        assert parameters[-1].name == "dtype"
        assert parameters[-1].kind is inspect.Parameter.KEYWORD_ONLY
