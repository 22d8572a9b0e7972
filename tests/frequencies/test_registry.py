"""Rope types: each beside its formula, all in one registry, and written back as they were read."""

import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posenc import Rotary
from posenc.frequencies import (
    NTK,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    Schedule,
    YaRN,
)
from posenc.frequencies.huggingface import COMMON, Rope
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.huggingface import rope_dictionary
from posenc.interop.rope_types import rope_type_of, schedule_of

WRITTEN = [
    Geometric(16, 5e5),
    Linear(Geometric(32), 4.0),
    YaRN(Geometric(32), 4.0, 4096, truncate=False, mscale=0.7, mscale_all_dim=1.0),
    YaRN(Geometric(32), 4.0, 4096, attention=1.25),
    Llama3(Geometric(32, 5e5), 8.0),
    Proportional(32, 0.5, 1e6),
    Linear(Proportional(32, 0.25), 8.0),
]


def test_it_holds_every_rope_type_of_transformers():
    named = {name for name, each in ROPE_TYPES.items() if each.in_transformers}
    theirs = {name for name in ROPE_INIT_FUNCTIONS if not name.startswith("posenc_")}
    assert named == {"default"} | (theirs & named)
    assert {"linear", "dynamic", "yarn", "longrope", "llama3", "proportional"} <= named


@pytest.mark.parametrize("schedule", WRITTEN, ids=lambda each: type(each).__name__)
def test_what_is_written_is_read_back(schedule):
    said = rope_dictionary(schedule, 32)
    rope_type = rope_type_of(said)
    width = int(32 * said.get("partial_rotary_factor", 1.0))
    trained = said.get("original_max_position_embeddings")
    rope = Rope(rope_type, said, 32, width, said["rope_theta"], trained, None)
    assert schedule_of(rope) == schedule
    assert set(said) <= COMMON | set(rope_type.keys)


def test_what_no_dictionary_tells_is_not_written():
    longrope = LongRoPE(Geometric(4), (1.0, 1.0), (1.0, 32.0), 4096).at(1)
    for schedule in (NTK(Geometric(8), 2.0), longrope, FromCheckpoint([1.0]),
                     Linear(Linear(Geometric(8), 2.0), 2.0)):  # fmt: skip
        assert rope_dictionary(schedule, 8) is None


def schedules() -> list[Schedule]:
    """One of every public schedule that multiplies its table with something."""
    return [
        YaRN(Geometric(8), 16.0, 4096),
        LongRoPE(Geometric(8), (1.0,) * 4, (2.0,) * 4, 4096, 32.0).at(9999),
        Linear(YaRN(Geometric(8), 16.0, 4096, mscale=1.0, mscale_all_dim=0.5), 2.0),
    ]


@pytest.mark.compiles
@pytest.mark.parametrize("schedule", schedules(), ids=lambda each: type(each).__name__)
def test_a_graph_sees_numbers_alone(schedule):
    """No decimal arithmetic: it would break the graph of a patched model."""
    torch.compiler.reset()
    rotary = Rotary(schedule)
    made = torch.compile(
        lambda p: rotary.table(p) * rotary.frequencies.softmax_factor, fullgraph=True,
        backend="eager",
    )(torch.arange(5))  # fmt: skip
    torch.testing.assert_close(made, rotary.table(range(5)) * schedule.softmax_factor)
    assert schedule.attention_factor != 1.0
