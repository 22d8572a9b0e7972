"""The example of long rows learns on four processes what it learns on one."""

import subprocess
import sys

import pytest
from tests.distributed.ranks import ROOT, environment

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]


def losses(launcher: list[str], *options: str) -> list[float]:
    command = [sys.executable, *launcher, "examples/long_context.py", "--length", "512", *options]
    ran = subprocess.run(
        [*command, "--steps", "3", "--dim", "16", "--depth", "1"],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return [float(line.split()[-1]) for line in ran.stdout.splitlines() if "loss" in line]


@pytest.mark.slow("processes of torchrun that train")
@pytest.mark.parametrize("options", [["--scores", "t5"], ["--spread", "ring"]], ids=["t5", "ring"])
def test_four_processes_have_the_losses_of_one(options):
    alone, together = losses([], *options), losses(TORCHRUN, *options)
    assert len(alone) == 3
    assert alone[2] < alone[0]
    assert together == pytest.approx(alone, abs=2e-4)
