"""Constructors: whatever is given, they work, or say in words of ours what they take."""

import importlib
import inspect
import math
import re
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import posenc
from posenc import (
    CAPE,
    SHAPE,
    AxialForm,
    CyclicOffset,
    DualChunk,
    Graph,
    LaplacianEncoding,
    LearnedGrid,
    PoSE,
    Positional,
    Randomized,
    RandomWalkEncoding,
    ReRoPE,
    Rotary,
    SelfExtend,
    Shaw,
    frequencies,
    plots,
    recipes,
)
from posenc.arguments import (
    check_choice,
    check_number,
    check_positive_number,
    check_whole,
)
from posenc.frequencies import Geometric
from posenc.numerics import buckets
from posenc.transformer import (
    Block,
    Encoder,
    FeedForward,
    KeyValueCache,
    LayerNorm,
    MultiHeadAttention,
    TokenEmbedding,
)

ROOT = Path(posenc.__file__).parent
ODD = [
    *(None, True, -1, 0, 1.5, -0.5, math.nan, math.inf, 1j, 10**30),
    *("x", [], (), (1,), {}, object(), torch.tensor(1.0)),
]
PLAIN, ONES = Geometric(8), (1.0,) * 4

SOUND = {
    case.build: dict(case.arguments)
    for file in sorted((Path(__file__).parents[1] / "contracts").glob("test_*.py"))
    for case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.values()
    if inspect.isclass(case.build)
} | {
    Positional: {},
    Graph: {"edge_index": torch.zeros(2, 1, dtype=torch.int64)},
    LaplacianEncoding: {"k": 2},
    RandomWalkEncoding: {"walk_length": 2},
    AxialForm: {"name": "mine", "axes": "yx", "formula": "[y | x]", "split": (4, 4)},
    CAPE: {},
    PoSE: {"longest": 9},
    SHAPE: {"most": 9},
    Randomized: {"longest": 9},
    ReRoPE: {},
    CyclicOffset: {"period": 6},
    SelfExtend: {},
    DualChunk: {},
    frequencies.ByLength: {"steps": ((64, PLAIN),)},
    frequencies.Clipped: {"of": PLAIN},
    frequencies.Divided: {"of": PLAIN, "divisors": ONES},
    frequencies.DyNTK: {"of": PLAIN, "trained_length": 64},
    frequencies.DyYaRN: {"of": PLAIN, "trained_length": 64},
    frequencies.DynamicNTK: {"of": PLAIN, "factor": 2.0, "trained_length": 64},
    frequencies.FromCheckpoint: {"frequencies": ONES},
    frequencies.Geometric: {"dim": 8},
    frequencies.Linear: {"of": PLAIN, "factor": 2.0},
    frequencies.Llama3: {"of": PLAIN},
    frequencies.LongRoPE: {"of": PLAIN, "short": ONES, "long": ONES, "trained_length": 64},
    frequencies.NTK: {"of": PLAIN, "factor": 2.0},
    frequencies.NTKByParts: {"of": PLAIN, "factor": 2.0, "trained_length": 64},
    frequencies.Powers: {"base": 2.0, "numerators": (0, 1), "denominator": 2},
    frequencies.Proportional: {"dim": 8},
    frequencies.RIFLEx: {"of": PLAIN, "k": 1, "length": 64},
    frequencies.Resonance: {"of": PLAIN},
    frequencies.TurnsPerUnit: {"turns_per_unit": ONES},
    frequencies.YaRN: {"of": PLAIN, "factor": 2.0, "trained_length": 64},
}
BUILDING_BLOCKS = {
    Block: {"dim": 8, "heads": 2},
    Encoder: {"dim": 8, "heads": 2, "depth": 1},
    FeedForward: {"dim": 8, "inner": 4},
    KeyValueCache: {},
    LayerNorm: {"dim": 8},
    MultiHeadAttention: {"dim": 8, "heads": 2},
    TokenEmbedding: {"num_embeddings": 5, "dim": 8},
}
SIZES = {"dim", "head_dim", "heads", "hidden", "max_len", "reach", "buckets", "max_positions"} | {
    *("depth", "inner", "num_embeddings", "kv_heads"),
}


def calls() -> list:
    return [
        pytest.param(build, name, id=f"{build.__name__}-{name}")
        for build in SOUND | BUILDING_BLOCKS
        for name in inspect.signature(build).parameters
        if name not in ("device", "dtype")
    ]


def numbers() -> list:
    def told(build, name):
        return str(inspect.signature(build).parameters[name].annotation)

    return [call for call in calls() if re.search(r"\b(int|float)\b", told(*call.values))]


def test_every_public_class_is_among_them():
    public = [getattr(posenc, name) for name in posenc.__all__]
    public += [getattr(frequencies, name) for name in frequencies.__all__]
    finished = {each for each in public if inspect.isclass(each) and not inspect.isabstract(each)}
    assert finished == set(SOUND)


@pytest.mark.parametrize(("build", "name"), calls())
def test_odd_arguments_are_refused_in_words_of_ours(build, name):
    for value in ODD:
        if type(value) is int and value > 2**60 and name in SIZES:
            continue  # as large a table would be built
        refusal = refusal_of(build, {**(SOUND | BUILDING_BLOCKS)[build], name: value})
        assert refusal is None or is_ours(refusal), f"{value!r}: {refusal!r}"


BY_SHAPE = {(FeedForward, "dim"), (LayerNorm, "dim"), (KeyValueCache, "size")} | {
    (TokenEmbedding, name) for name in ("dim", "num_embeddings")
}
"""Numbers beside which weights or buffers have shapes, by which others fail aloud."""


@pytest.mark.parametrize(("build", "name"), numbers())
def test_no_number_is_set_that_the_constructor_refuses(build, name):
    arguments = (SOUND | BUILDING_BLOCKS)[build]
    made = build(**arguments)
    if (build, name) in BY_SHAPE or name not in getattr(made, "__dict__", {}):
        return
    for value in (math.nan, math.inf, -math.inf, -1, 0, 1.5, True, "x", 10**30):
        if value == 10**30 and name in SIZES:
            continue
        if refusal_of(build, {**arguments, name: value}) is not None:
            with pytest.raises((ValueError, TypeError, AttributeError), match=name):
                setattr(made, name, value)


@pytest.mark.parametrize("codes", [b"half", bytearray(4)], ids=repr)
def test_bytes_are_no_row_of_numbers(codes):
    """Python iterates them as the codes of their letters."""
    for build, name in (each.values for each in calls()):
        refusal = refusal_of(build, {**(SOUND | BUILDING_BLOCKS)[build], name: codes})
        assert refusal is not None, f"{build.__name__} takes {name}={codes!r}"
        assert is_ours(refusal), f"{build.__name__}({name}={codes!r}): {refusal!r}"


@pytest.mark.parametrize(
    "call",
    [
        lambda codes: posenc.LearnedGrid(2, (2, 2)).resized(codes),
        lambda codes: posenc.positions.packed(codes),
        lambda codes: posenc.positions.grid(2, 2, start=codes),
        lambda codes: posenc.positions.grid(2, 2, stride=codes),
        lambda codes: posenc.positions.grid(2, 2, order=codes),
        lambda codes: posenc.positions.packed_grids([codes]),
        lambda codes: posenc.positions.prefixed(torch.zeros(1, 2, dtype=torch.int64), at=codes),
        lambda codes: posenc.positions.Coordinates([0.5, 1.0], scale=codes),
        lambda codes: Positional(scores=codes[:0]),
        lambda codes: setattr(Encoder(8, 2, 2), "windows", codes),
        lambda codes: plots.bias([[1.0, 2.0]], [0, 1], heads=codes),
    ],
)
def test_neither_are_they_of_functions(call):
    for codes in (b"\0\1", bytearray(b"\1\0")):
        with pytest.raises((TypeError, ValueError)) as refusal:
            call(codes)
        assert is_ours(refusal.value), repr(refusal.value)


def flags() -> list:
    return [
        pytest.param(build, name, id=f"{build.__name__}-{name}")
        for build in SOUND | BUILDING_BLOCKS
        for name, parameter in inspect.signature(build).parameters.items()
        if isinstance(parameter.default, bool)
    ]


NEITHER = ["no", "False", "", 0, 1, None, 2.5, np.False_, torch.tensor(False)]


@pytest.mark.parametrize(("build", "name"), flags())
def test_what_is_true_or_false_is_nothing_else(build, name):
    for value in NEITHER:
        refusal = refusal_of(build, {**(SOUND | BUILDING_BLOCKS)[build], name: value})
        assert refusal is not None, f"{value!r} is taken"
        assert is_ours(refusal), f"{refusal!r}"
        assert f"{name} is" in str(refusal), f"{refusal!r}"


@pytest.mark.parametrize(
    "call",
    [
        lambda flag: LearnedGrid(2, (2, 2)).resampled((3, 3), antialias=flag),
        lambda flag: LearnedGrid(2, (2, 2)).resized((3, 3), antialias=flag),
        lambda flag: buckets.t5_buckets(torch.arange(3), bidirectional=flag),
        lambda flag: recipes.t5(decoder=flag),
        lambda flag: recipes.deit(8, distilled=flag),
        lambda flag: plots.bias([[1.0, 2.0]], [0, 1], random=flag),
    ],
)
def test_neither_is_it_of_functions(call):
    for value in NEITHER:
        with pytest.raises((TypeError, ValueError), match=r"is .*; it must be True or False"):
            call(value)


def refusal_of(build, arguments) -> Exception | None:
    """What is raised where something is built, if anything is."""
    try:
        with warnings.catch_warnings(action="ignore"):
            build(**arguments)
    except Exception as error:
        return error
    return None


def is_ours(error: Exception) -> bool:
    """Whether a ``raise`` of the package made it: no operator, and no function of torch."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    stated = (frame.line or "").startswith("raise ")
    expected = isinstance(error, ValueError | TypeError | IndexError)
    return stated and expected and Path(frame.filename).is_relative_to(ROOT)


def test_words_that_are_not_ours_are_told_apart():
    def compares(heads):
        return heads < 1

    def hands_on(std):
        return torch.nn.init.normal_(torch.empty(2), std=std)

    for build, arguments in ((compares, {"heads": None}), (hands_on, {"std": -1.0})):
        assert not is_ours(refusal_of(build, arguments))
    assert is_ours(refusal_of(check_whole, {"heads": None}))


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert Shaw(np.int64(2), np.int32(8), np.int64(3)).keys.shape == (7, 8)
    check_whole(heads=np.int64(4))


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (lambda: check_whole(heads=0), "heads is 0; it must be a whole number from 1 on"),
        (lambda: check_whole(heads=True), "heads is True; it must be a whole number"),
        (lambda: check_whole(0, offset=2.0), r"offset is 2\.0; it must be a whole number from 0"),
        (lambda: check_whole(most=2**62 + 1), "positions are int64, so it must be 2.62 or less"),
        (lambda: check_number(std=math.nan), "std is nan; it must be a finite number"),
        (lambda: check_number(0.0, std=-1), "std is -1; it must be a finite number from 0 on"),
        (lambda: check_number(std="1"), "std is '1'; it must be a finite number"),
        (lambda: check_positive_number(c=0), "c is 0; it must be a finite number above 0"),
        (lambda: check_positive_number(c=10**30), "c is 1000000000000000000000000000000; it must"),
        (lambda: check_choice(("a", "b", "c"), x="d"), "x is 'd'; it must be 'a', 'b' or 'c'"),
        (lambda: check_choice(("a",), x=[]), r"x is \[\]; it must be 'a'"),
        (lambda: Rotary(64, head_dim=64.0), r"head_dim is 64\.0; it must be a whole number"),
    ],
)
def test_what_came_and_what_was_expected_is_told(check, text):
    with pytest.raises(ValueError, match=text):
        check()


@pytest.mark.parametrize(
    "call",
    [
        lambda: posenc.ALiBi(2, slopes={0.5, 0.25}),
        lambda: posenc.DINOv3Rotary(8, (7, 7), periods={1.0, 2.0}),
        lambda: frequencies.FromCheckpoint({0.5, 1.0}),
        lambda: frequencies.LongRoPE(PLAIN, {1.0, 2.0, 3.0, 4.0}, ONES, 64),
        lambda: frequencies.TurnsPerUnit({0.5, 1.0}),
        lambda: posenc.positions.packed({3, 2}),
        lambda: posenc.positions.Coordinates({3.0, 1.0}),
    ],
)
def test_what_has_no_order_is_no_row_of_numbers(call):
    with pytest.raises((TypeError, ValueError), match="list") as refusal:
        call()
    assert is_ours(refusal.value)
