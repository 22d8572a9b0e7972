"""The benchmark of cut rows runs, and counts the bytes that a gather must move."""

import json
import subprocess
import sys

import pytest
from tests.distributed.ranks import ROOT, environment


@pytest.mark.slow("processes that are timed")
def test_it_runs_and_counts(tmp_path):
    report = tmp_path / "report.json"
    sizes = ["--lengths", "64", "--worlds", "1", "2", "--json", str(report)]
    subprocess.run([sys.executable, "-m", "benchmarks.distributed", *sizes],
                   cwd=ROOT, env=environment(), check=True, timeout=200)  # fmt: skip
    rows = json.loads(report.read_text())
    assert {row["spread"] for row in rows} == {"one process", "gather", "heads", "ring"}
    moved = {row["spread"]: row["moved"] for row in rows if row["encoding"] == "T5"}
    # Keys and values of 32 tokens, 8 heads of 64 in four bytes; and their gradients.
    assert moved["gather"] == 2 * 2 * 32 * 8 * 64 * 4
    assert moved["one process"] == 0
