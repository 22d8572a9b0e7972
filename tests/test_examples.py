"""Every file of ``examples/`` runs, smaller than by itself, and shows what it promises."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"long_context.py"}
"""Has tests of its own, with processes: tests/test_long_context.py."""
HERE = {"small_gpt", "extend_a_model", "vision", "packed_documents", "own_encoding"}


@pytest.fixture
def example(monkeypatch, capsys) -> Callable[..., str]:
    """Runs a file as a program, and gives what it printed."""

    def run(name: str, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *options])
        with torch.random.fork_rng():
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def losses(said: str) -> list[float]:
    return [float(each) for each in re.findall(r"^step \d+  loss ([\d.]+)$", said, flags=re.M)]


def test_documents_read_alike_packed_and_alone(example):
    said = example("packed_documents", "--length", "48", "--documents", "5")
    count, apart = re.search(
        r"^(\d+) documents, .* at most (\S+) apart$", said, flags=re.M
    ).groups()
    assert (int(count), float(apart) < 1e-5) == (5, True)


@pytest.mark.slow("an example that trains")
@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "rotary", "alibi", "t5"])
def test_a_small_gpt_learns_and_goes_on(example, encoding):
    said = example("small_gpt", "--encoding", encoding, "--steps", "12", "--length", "24")
    first, *_, last = losses(said)
    assert last < 0.8 * first
    assert "def mean(" in said


@pytest.mark.slow("an example that loads transformers")
@pytest.mark.parametrize("kind", ["yarn", "linear", "dynamic"])
def test_a_model_is_extended_and_says_so_after_loading(example, tmp_path, kind):
    from posenc.inspection.rotary import inspect_config

    said = example("extend_a_model", "--type", kind, "--factor", "2", "--output", str(tmp_path))
    assert float(re.search(r"differ by (\S+)", said)[1]) < 1e-4
    assert f"extended: {kind}, 2048 to 4096 positions" in said
    assert "the configuration follows: True" in said
    layers = inspect_config(tmp_path / "config.json").layers
    assert {(each.scaling, each.factor, each.trained_length) for each in layers} == {
        (kind, 2.0, 2048)
    }


@pytest.mark.slow("an example that trains")
def test_a_vision_transformer_learns(example):
    said = example("vision", "--steps", "60", "--side", "4")
    first, *_, last = losses(said)
    assert last < first
    assert re.findall(r"^(\d) x \1 patches: [\d.]+ right$", said, flags=re.M) == ["4", "6"]


@pytest.mark.slow("an example that runs the contract battery and trains")
def test_an_encoding_of_your_own_passes_and_learns(example):
    said = example("own_encoding", "--steps", "25", "--length", "12")
    assert int(re.search(r"^(\d+) checks passed$", said, flags=re.M)[1]) > 10
    first, *_, last = losses(said)
    assert last < first
