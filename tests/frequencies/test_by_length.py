"""Schedules by length: which, refused beyond, and keys that tell numbers apart and nothing else."""

import pytest

from posenc.frequencies import (
    ByLength,
    Divided,
    Geometric,
    Linear,
    LongRoPE,
    YaRN,
    schedule_key,
)

PLAIN = Geometric(128, 1e6)


def test_the_first_step_that_is_long_enough():
    by_length = ByLength.yarn(PLAIN, 32768, factors=(2.0, 4.0))
    assert by_length.at(1) == by_length.at(32768) == PLAIN
    assert by_length.at(32769) == by_length.at(65536) == YaRN(PLAIN, 2.0, 32768)
    assert by_length.at(65537) == by_length.at(131072) == YaRN(PLAIN, 4.0, 32768)
    assert by_length.longest == 131072
    for length in (0, 131073):
        with pytest.raises(ValueError, match="length"):
            by_length.at(length)


def test_longrope_has_its_short_list_and_its_long_one():
    longrope = LongRoPE(Geometric(4), (1.0, 1.5), (1.0, 32.0), 4096, factor=32.0)
    by_length = ByLength.longrope(longrope, 131072)
    assert by_length.at(4096) == longrope.at(4096)
    assert by_length.at(4097) == by_length.at(131072) == longrope.at(131072)
    with pytest.raises(ValueError, match="grow"):
        ByLength.longrope(longrope, 4096)


def test_keys_are_those_of_the_numbers():
    same = [PLAIN, Linear(PLAIN, 1), YaRN(PLAIN, 1, 4096), Divided(PLAIN, (1.0,) * 64)]
    assert len({schedule_key(schedule) for schedule in same}) == 1
    others = [
        PLAIN,
        Geometric(128, 1e6 + 1),
        YaRN(PLAIN, 2.0, 32768),
        YaRN(PLAIN, 2.0, 32769 * 4),
        YaRN(PLAIN, 4.0, 32768),
        YaRN(PLAIN, 2.0, 32768, attention=1.0),
        YaRN(PLAIN, 2.0, 32768, attention=1.0, mscale_all_dim=1.0),
        Linear(PLAIN, 2),
    ]
    assert len({schedule_key(schedule) for schedule in others}) == len(others)
