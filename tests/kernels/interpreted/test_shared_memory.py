"""Operands anywhere in one buffer, once more with Triton."""

import pytest
from tests.kernels.test_shared_memory import (
    ROTATIONS,
    SUMS,
    add_somewhere,
    often,
    rotate_somewhere,
)


@pytest.mark.usefixtures("accelerated")
@often(80)
@ROTATIONS
def test_a_rotation_is_right_or_refused(orders, places, in_place, looked_up, kv_heads):
    rotate_somewhere(orders, places, in_place, looked_up, kv_heads)


@pytest.mark.usefixtures("accelerated")
@often(40)
@SUMS
def test_a_sum_is_right_or_refused(orders, places, in_place, looked_up):
    add_somewhere(orders, places, in_place, looked_up)
