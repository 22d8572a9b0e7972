"""The benchmarks run, and their peers compute what they are compared with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import reals

ROOT = Path(__file__).parents[1]

PEERS = """
import torch
from benchmarks import formulas
from posenc import Rotary, Sinusoidal
from posenc.positions import consecutive
ours = Sinusoidal(32).table(consecutive(64))
for peer in (formulas.float32_formula, formulas.float64_formula, formulas.nested_loop):
    assert torch.allclose(peer(64, 32), ours, atol=1e-5), peer
x = torch.randn(2, 64, 32)
added = Sinusoidal(32, scale="sqrt_dim").encode(x, ours)
assert torch.allclose(formulas.TutorialModule(32, 0.0)(x), added, atol=1e-4)
q, k, table = torch.randn(1, 4, 9, 8), torch.randn(1, 2, 9, 8), Rotary(8).table(consecutive(9))
cos, sin = (torch.cat((t, t), -1)[None] for t in table.unbind(-2))
for peer in (formulas.half_formula, formulas.of_transformers()):
    made = zip(peer(q, k, cos, sin), Rotary(8).encode_both(q, k, table))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in made), peer
"""


def python(*arguments: str) -> subprocess.CompletedProcess:
    ran = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


@pytest.mark.slow("benchmarks and their peers")
def test_a_quick_run_reports_every_contender(tmp_path):
    report, picture = tmp_path / "report.json", tmp_path / "growth.png"
    options = ["--quick", "--rounds", "1", "--json", str(report), "--plot", str(picture)]
    shown = python("-m", "benchmarks", *options).stdout
    timings = json.loads(report.read_text())["timings"]
    assert all(t["milliseconds"] > 0 and t["name"] in shown for t in timings)
    cases = {t["case"]: [u for u in timings if u["case"] == t["case"]] for t in timings}
    for first, *others in cases.values():
        assert first["name"].startswith("posenc")
        assert first["times_ours"] == 1
        assert others
    for word in ("table", "add", "embed", "rotary", "attention", "growth", "graphs", "pack"):
        assert any(case.startswith(word) for case in cases), word
    assert picture.stat().st_size > 10_000


@pytest.mark.slow("benchmarks and their peers")
def test_peers_compute_the_same():
    python("-c", PEERS)


@pytest.mark.slow("Triton's interpreter runs everything that a card would")
def test_the_command_for_a_card_runs_on_the_interpreter(tmp_path):
    pytest.importorskip("triton")
    python("-m", "benchmarks.accelerator", "--tiny", "--out", str(tmp_path))
    found = json.loads((tmp_path / "accelerator.json").read_text())
    assert not found["left_out"]
    assert {check["state"] for check in found["checks"]} == {"held"}
    assert all(timing["milliseconds"] > 0 for timing in found["timings"])
    assert "no time means anything" in (tmp_path / "accelerator.md").read_text()


def test_reals_are_held_against_whole_positions_of_every_encoding():
    names = {name for name, case in reals.cases().items() if case.module().takes_reals}
    assert {"cayley-string", "additive-grape", "dinov3", "perceiver"} <= names
    rows = list(reals.measured(3, ["additive-grape", "dinov3"], rounds=1))
    of_biases = [row["between"] for row in rows if row["encoding"] == "additive-grape"]
    assert of_biases == list(reals.PAIRS)
    for row in rows:
        assert min(row["ratios"].values()) > 0
        assert len(row["ratios"]) == (11 if row["encoding"] == "dinov3" else 8)
        assert reals.line(row).count("–") == 11 - len(row["ratios"])
