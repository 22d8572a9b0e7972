"""What memory the strided backend takes beside no bias at all, in a process of its own.

The process reads its own record of the highest memory: what ``getrusage`` tells, a child takes over
from its parent, which may be the larger one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parallel import MEMORY_KEPT

MEASURE = """
import torch
from torch.nn import functional as F
from posenc import ALiBi, T5Bias, Positional, attention
torch.set_num_threads(2)
torch.manual_seed(0)
q, k, v = (torch.randn(1, 8, 4096, 64) for _ in range(3))

def peak():  # the highest memory of this process, in MiB
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

positional, more = Positional(scores={bias}), {more}
with torch.no_grad():
    short = [t[:, :, :600].contiguous() for t in (q, k, v)]
    # What loading code takes comes first.
    attention(*short, positional=positional, is_causal={causal}, backend="strided", **more)
    F.scaled_dot_product_attention(q, k, v, is_causal={causal})
    before = peak()
    attention(q, k, v, positional=positional, is_causal={causal}, backend={backend!r}, **more)
    print(peak() - before)
"""


def extra(bias: str, causal: bool, backend: str, more: str = "{}") -> float:
    """MiB of the highest memory beyond that of attention without a bias.

    What is freed goes back to the system at once: else the C library keeps some megabytes of it,
    more or fewer with each run.
    """
    code = MEASURE.format(bias=bias, causal=causal, backend=backend, more=more)
    returned = os.environ | dict.fromkeys(MEMORY_KEPT, "65536")
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=returned
    )
    return float(ran.stdout)


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux tells what a process has held"
)


@pytest.mark.slow("memory measured in processes of their own")
@pytest.mark.parametrize(
    ("bias", "causal", "more", "most"),
    [
        ("ALiBi(8)", True, "{}", 10),
        ("T5Bias(8)", False, "{}", 10),
        # Results in float32 stay until they are divided, and capped scores until they are summed.
        ("()", True, "{'sinks': torch.zeros(8)}", 15),
        ("()", True, "{'softcap': 50.0}", 15),
    ],
)
def test_the_strided_backend_holds_no_matrix(bias, causal, more, most):
    assert extra(bias, causal, "strided", more) <= most


@pytest.mark.slow("memory measured in processes of their own")
def test_and_the_measure_can_see_a_matrix():
    """The dense backend holds 8 × 4096 × 4096 numbers: half a gigabyte."""
    assert extra("ALiBi(8)", False, "dense") > 400
