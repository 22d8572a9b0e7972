"""What memory the strided route takes beside no bias at all, in a process of its own."""

import subprocess
import sys

import pytest

MEASURE = """
import resource, sys, torch
from torch.nn import functional as F
from posenc import ALiBi, T5Bias, Positional, attention
torch.set_num_threads(2)
torch.manual_seed(0)
q, k, v = (torch.randn(1, 8, 4096, 64) for _ in range(3))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
positional = Positional(scores={bias})
with torch.no_grad():
    short = [t[:, :, :600].contiguous() for t in (q, k, v)]
    attention(*short, positional, causal={causal}, route="strided")  # what loading code takes
    F.scaled_dot_product_attention(q, k, v, is_causal={causal})
    before = peak()
    attention(q, k, v, positional, causal={causal}, route={route!r})
    print(peak() - before)
"""


def extra(bias: str, causal: bool, route: str) -> float:
    """MiB of the highest memory beyond that of attention without a bias."""
    code = MEASURE.format(bias=bias, causal=causal, route=route)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(ran.stdout)


@pytest.mark.parametrize("bias", ["ALiBi(8)", "T5Bias(8)"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_strided_route_takes_no_more_than_ten_megabytes(bias, causal):
    assert extra(bias, causal, "strided") <= 10


def test_and_the_measure_can_see_a_matrix():
    """The dense route holds 8 × 4096 × 4096 numbers: half a gigabyte."""
    assert extra("ALiBi(8)", False, "dense") > 400
