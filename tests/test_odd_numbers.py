"""Counts, lengths, sizes and offsets of functions: no odd number is cut, drawn or answered."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
import torch
from tests.encodings.test_arguments import BUILDING_BLOCKS, SOUND, is_ours, refusal_of
from tests.one_rank import one_rank as one_rank
from tests.usual_calls import SEVERAL, SLOW, USUAL, whole_numbers

from posenc import inspection

ODD = [2.5, True, np.float64(2.5), np.True_, torch.tensor(2.5), torch.tensor(True)]
ODD += ["3", math.nan, math.inf, 3j, (), object()]

METHODS = FunctionType | classmethod | staticmethod

PLACES = [
    *("", ".encodings.tokens", ".encodings.queries_keys", ".encodings.scores"),
    *(".encodings.remapping", ".encodings.graphs", ".frequencies", ".distributed"),
    *(".transformer", ".recipes", ".plots", ".testing", ".audit", ".lab", ".explorer"),
    *(".interop.exports", ".interop.huggingface", ".interop.serving", ".interop.torch"),
    *(".numerics.buckets", ".numerics.pairing", ".numerics.slopes"),
    *(f".inspection.{file.stem}" for file in Path(inspection.__path__[0]).glob("[!_]*.py")),
]
"""Modules whose names are public, those of the reference."""

NOT_ASKED = {
    "called by an encoder, of what it has seen": [
        *("transformer.KeyValueCache.extend", "transformer.KeyValueCache.read"),
        "transformer.KeyValueCache.make_room",
        *(f"transformer.Tables.{name}" for name in ("rows", "kept_rows", "rotations", "biases")),
    ],
    "called by attention over shards": [
        *("distributed.Shards.in_order", "distributed.Shards.out_of_order"),
        "distributed.Shards.part",
    ],
    "called where an encoder is cut among ranks": ["transformer.MultiHeadAttention.keep_one_of"],
    "take what a function beside them has checked": [
        *("encodings.queries_keys.AxialForm.pairs", "encodings.queries_keys.AxialForm.schedules"),
        *("inspection.rotary.numbers_of", "inspection.weights.Stored.first_rows"),
        *("numerics.buckets.between_t5_borders", "numerics.buckets.between_deberta_ends"),
        *(f"lab.Task.{name}" for name in ("generate", "reported", "tokens")),
    ],
    "takes positions": ["testing.Case.far"],
    "take the shapes of tensors": [
        *(f"interop.huggingface.RowOrder.{name}" for name in ("rows", "index", "keeps_blocks")),
        "interop.huggingface.row_orders",
    ],
}


def public() -> Iterator[tuple[str, Callable]]:
    """Functions, classes and methods that users call, by place and name."""
    for place in PLACES:
        module = import_module(f"posenc{place}")
        listed = getattr(module, "__all__", None)
        for name in listed or vars(module):
            thing = getattr(module, name)
            own = listed or getattr(thing, "__module__", "") == module.__name__
            if name.startswith("_") or not own or (not place and inspect.isclass(thing)):
                continue
            label = f"{place}.{name}".lstrip(".")
            if inspect.isclass(thing):
                yield from methods(label, thing)
            if callable(thing):
                yield label, thing


def methods(label: str, of: type) -> Iterator[tuple[str, Callable]]:
    for name, thing in vars(of).items():
        if isinstance(thing, METHODS) and not name.startswith("_"):
            yield f"{label}.{name}", getattr(of, name)


def test_whatever_takes_a_whole_number_is_asked():
    takes = {label for label, thing in public() if not is_elsewhere(thing) and whole_numbers(thing)}
    left_out = {label for labels in NOT_ASKED.values() for label in labels}
    assert len(takes) > 150
    assert takes - USUAL.keys() == left_out


def is_elsewhere(thing: Callable) -> bool:
    """Constructors that are asked by tests/encodings/test_arguments.py, and mere records."""
    if not inspect.isclass(thing):
        return False
    records = is_dataclass(thing) and "__post_init__" not in vars(thing)
    return issubclass(thing, Exception) or records or thing in SOUND or thing in BUILDING_BLOCKS


@pytest.mark.parametrize("name", USUAL)
def test_odd_numbers_are_refused_in_words_that_tell_them(name):
    call, asked = USUAL[name]
    usual = {argument: value for argument, (value, _) in asked.items()}
    assert name in SLOW or refusal_of(call, usual) is None
    for argument, (_, least) in asked.items():
        below = [number for number in (-1, 0) if least is not None and number < least]
        for odd in (*ODD, *below):
            refusal = refusal_of(call, usual | {argument: odd})
            assert refusal is not None, f"{argument}={odd!r} is answered"
            assert is_ours(refusal), f"{argument}={odd!r}: {refusal!r}"
            assert argument in str(refusal) or str(odd) in str(refusal), f"{refusal!r}"


@pytest.mark.parametrize("name", SEVERAL)
def test_one_number_is_no_several(name):
    for one in (4, 2.5, True, torch.tensor(4), np.int64(4)):
        with pytest.raises((TypeError, ValueError)) as refusal:
            SEVERAL[name](one)
        assert is_ours(refusal.value), f"{one!r}: {refusal.value!r}"
