"""How ``check`` is told what to do, what it says, and what it cannot ask."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from tests.audit.specimens import alibi_of_a_mask
from tests.audit.zoo.arithmetic import interleaved, powers
from tests.audit.zoo.right.added import Annotated, Tutorial
from tests.audit.zoo.right.rotary import VLLM, CacheOfFourRows, LlamaRotary
from tests.audit.zoo.specimen import changed
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn

import posenc
from posenc.audit import check
from posenc.audit.check import FAULTS
from posenc.audit.report import sarif

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def names(report) -> list[str]:
    return [fault.name for fault in report.faults]


def verdicts(thing, **options):
    return {each.question: each for each in check(thing, **options).verdicts}


def test_a_battery_that_fails_is_reported():
    class Wrong(posenc.TokenEncoding):
        dim, batch_first, keeps_norm, keeps_shift = 8, True, False, False

        def table(self, positions, *, dtype=None):
            return torch.zeros(*positions.shape, 8, dtype=dtype or torch.float32)

        def encode(self, x, table):
            return x + table

    assert "encodes-the-sequence" in names(check(Wrong))


# How it is told what to do.


def test_a_call_may_be_written_out():
    class Strange(Turn):
        def forward(self, which, one, other):
            return super().forward(one, other, which[:, 1:])

    report = check(Strange, call="subject(torch.cat((p[:, :1], p), 1), q, k)", dim=32)
    assert "half pairing" in report.identity


def test_what_a_written_call_gives_is_watched():
    class Writing(Turn):
        def forward(self, x, start):
            positions = start + torch.arange(x.shape[-2])[None]
            return x.copy_(super().forward(x, x, positions)[0])

    assert "input-written" in names(check(Writing, call="subject(q, int(offset))", dim=32))


def test_only_and_ignore():
    """Names may come from a generator."""
    some = check(VLLM, only=iter(["is-relative", "is-precise"]))
    assert [v.question for v in some.verdicts] == ["is-relative", "is-precise"]
    assert check(LlamaRotary, strict=True).status == 1
    ignoring = check(LlamaRotary, strict=True, ignore=iter(["cast-breaks-it"]))
    assert (ignoring.status, ignoring.left_out) == (0, ["cast-breaks-it"])


def test_a_function_keeps_what_it_encloses():
    held = {"calls": 0, "table": posenc.Sinusoidal(16).table(torch.arange(64))}

    def add(x):
        held["calls"] += 1
        return x + held["table"][: x.shape[1]]

    assert check(add).ok
    assert held["calls"] == 0


# What it says.


def test_the_page_has_the_names_of_all_faults():
    page = (ROOT / "docs/checking.md").read_text()
    listed = page.partition("## What is found")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)*)`", listed)) == FAULTS


def test_what_is_refused_is_not_told_as_asked():
    class RowsOfSeveralTokens(nn.Module):
        def forward(self, x, positions=None):
            positions = torch.arange(x.shape[1]) if positions is None else positions
            if len(x) > 1 and x.shape[1] == 1:
                raise ValueError("rows of several tokens, please")
            return x + sines()[positions]

    told = verdicts(RowsOfSeveralTokens)["rows-have-their-own-positions"]
    assert told.outcome == "passed"
    assert told.told.count("rows of 6 tokens") == 2
    assert "rows of 1" not in told.told
    two = next(v for name, v in verdicts(CacheOfFourRows).items() if "own-positions" in name)
    assert two.outcome == "passed"


def sines(n_position: int = 512, d_hid: int = 32):
    """A table by a product of matrices."""
    return interleaved(torch.arange(n_position).float()[:, None] @ powers(d_hid)[None])


def test_what_cannot_be_asked_is_said():
    jitter = changed(
        Tutorial, "Jitter", forward=lambda s, of, x: of(x) + (torch.rand(()) if s.training else 0.0)
    )
    assert verdicts(sines)["survives-autocast"].outcome == "not asked"
    assert verdicts(alibi_of_a_mask)["rows-have-their-own-padding"].outcome == "not asked"
    asked = verdicts(jitter)["same-however-it-is-given"]
    assert asked.told.endswith("not in training, where it differs by chance")


def test_what_is_guessed_and_never_said_is_told_and_a_pass_is_a_measurement():
    class Masked(VLLM):
        def __init__(self, head_size):
            super().__init__(head_size)

        def forward(self, positions, query, key, attention_mask=None):
            return super().forward(positions, query, key)

    class Guessed(Annotated):
        def __init__(self, d_model, max_len):
            super().__init__(d_model, max_len=max_len)

    report = check(Masked)
    assert "; never said: attention_mask" in report.understood
    assert "built with d_model=64, max_len=512" in check(Guessed).understood
    assert all(verdict.told for verdict in report.verdicts)
    asked = len(report.verdicts) - len(report.not_asked)
    assert f"{asked} of {len(report.verdicts)} questions asked" in report.conclusion
    learned_nothing = check(VLLM, only="survives-a-cast")
    assert learned_nothing.verdicts[0].outcome == "passed"
    assert (learned_nothing.ok, learned_nothing.status) == (False, 2)


def test_reports_for_machines():
    report = check(LlamaRotary)
    assert list(report.errors) == sorted(report.errors)
    assert report.errors[63] < report.errors[2047]
    assert json.loads(json.dumps(report.as_dict()))["faults"][0]["severity"] == "lossy"
    assert sarif(report)["runs"][0]["results"][0]["level"] == "warning"


@pytest.mark.slow("a suite in processes of its own")
def test_the_plugin_checks_what_a_marked_test_returns(tmp_path):
    source = """
        import pytest
        from tests.audit.zoo.right.added import Annotated
        from tests.audit.zoo.wrong.added import CountsCalls

        @pytest.mark.posenc(length=64)
        def test_right():
            return Annotated(32)

        @pytest.mark.posenc
        def test_wrong():
            return CountsCalls()

        @pytest.mark.posenc
        def test_nothing():
            pass

        def test_other():
            pass
    """
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["posenc.audit.plugin"]\n')
    (tmp_path / "test_theirs.py").write_text(textwrap.dedent(source))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "2 failed, 2 passed" in ran
    assert "WRONG state-between-calls" in ran
