"""A rank that is killed, raises or stalls ends the others in an error, never in a hang."""

import subprocess
import sys

import pytest
from tests.distributed.faults import SECONDS, WRONG
from tests.distributed.ranks import ROOT, environment

LIMIT = 60 + 3 * SECONDS  # what a busy machine may take to begin, and then some


@pytest.mark.slow("ranks that go wrong, in processes of their own")
@pytest.mark.parametrize("spread", ["gather", "heads", "ring"])
@pytest.mark.parametrize("fault", ["killed", "raising", "stalled"])
def test_a_fault_of_one_rank_ends_the_other_in_an_error(tmp_path, fault, spread):
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.distributed.faults", fault, spread, str(rank), tmp_path],
            cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        told = [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    sound = 1 - WRONG
    assert processes[sound].returncode not in (0, None), told[sound]
    assert "RuntimeError" in told[sound] or "DistBackendError" in told[sound], told[sound]
    assert not any("as if nothing" in words for words in told)
