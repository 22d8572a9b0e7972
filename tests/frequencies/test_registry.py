"""Rope types are written as they are read."""

import pytest

from posenc.frequencies import (
    Geometric,
    Linear,
    Llama3,
    Proportional,
    YaRN,
)
from posenc.frequencies.huggingface import COMMON, Rope
from posenc.interop.huggingface import rope_dictionary
from posenc.interop.rope_layers import rope_type_of

WRITTEN = [
    Geometric(16, 5e5),
    Linear(Geometric(32), 4.0),
    YaRN(Geometric(32), 4.0, 4096, truncate=False, mscale=0.7, mscale_all_dim=1.0),
    YaRN(Geometric(32), 4.0, 4096, attention=1.25),
    Llama3(Geometric(32, 5e5), 8.0),
    Proportional(32, 0.5, 1e6),
    Linear(Proportional(32, 0.25), 8.0),
]


@pytest.mark.parametrize("schedule", WRITTEN, ids=lambda each: type(each).__name__)
def test_what_is_written_is_read_back(schedule):
    said = rope_dictionary(schedule, 32)
    rope_type = rope_type_of(said)
    width = int(32 * said.get("partial_rotary_factor", 1.0))
    trained = said.get("original_max_position_embeddings")
    rope = Rope(rope_type, said, 32, width, said["rope_theta"], trained, None)
    assert rope.rope_type.read(rope, None) == schedule
    assert set(said) <= COMMON | set(rope_type.keys)
