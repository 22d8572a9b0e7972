"""Rope types: each beside its formula, all in one registry, and written back as they were read."""

import pytest
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posenc.frequencies import (
    NTK,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
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
