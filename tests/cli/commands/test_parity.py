"""``posenc parity`` in a terminal: statuses, what it prints, and what it writes."""

import json

import pytest
import torch

from posenc import Rotary
from posenc.cli.main import main

ENCODING = ["--encoding", "Rotary(16, base=500000)", "--length", "64"]


def test_bits_that_differ_and_bits_that_do_not(capsys):
    assert main(["parity", "transformers", "vllm", *ENCODING]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "the kept table: equal bits" in said
    assert "products and sums are rounded differently" in said
    assert "Bits differ from position 1 on (positions 0 to 63, bfloat16)." in said
    assert main(["parity", "transformers", "vllm", *ENCODING, "--dtype", "float32"]) == 0
    assert "Equal bits: transformers and vllm" in capsys.readouterr().out


@pytest.mark.parametrize("length", [40, 1000])
def test_the_advice_goes_by_the_kept_table(capsys, length):
    """In bfloat16 angles that differ make one table, at first."""
    given = ["--encoding", "Rotary(128, base=500000)", "--length", str(length)]
    assert main(["parity", "vllm", "mlx", *given]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "angles: equal bits" not in out
    assert ("the kept table: equal bits" in out) is (length == 40)
    assert ("load one" in out) is (length == 1000)


OWN = """
import torch
print("at import")
def rotate(q, k, position_ids):
    print("called")
    w = 1.0 / (10000.0 ** (torch.arange(0, 16, 2).float() / 16))
    a = (position_ids[..., None].float() * w).unsqueeze(1)
    a = torch.cat((a, a), -1)
    c, s = a.cos().to(q.dtype), a.sin().to(q.dtype)
    half = lambda x: torch.cat((-x[..., 8:], x[..., :8]), -1)
    return q * c + half(q) * s, k * c + half(k) * s
"""


def test_an_own_file_and_a_configuration(run, tmp_path):
    own, config = tmp_path / "own.py", tmp_path / "config.json"
    own.write_text(OWN)
    shape = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 2}
    config.write_text(json.dumps(shape))
    given = ["parity", f"{own}:rotate", "transformers", "--config", config, "--length", "40"]
    equal = run(*given)
    assert equal.status == 0
    assert "Equal bits: " in equal.out
    printed = run(*given[:2], "exact", *given[3:], "--format", "json")
    assert printed.status == 1
    json.loads(printed.out)
    assert "at import\n" in printed.err
    assert "called\n" in printed.err
    config.write_text(json.dumps({**shape, "rope_theta": 500000.0}))
    assert "That is more than rounding: bases" in run(*given).out


def test_it_writes_the_exact_table(tmp_path, capsys):
    path = tmp_path / "table.pt"
    given = ["parity", "vllm", "exact", *ENCODING, "--dtype", "float32", "--write", str(path)]
    assert main(given) == 1
    assert "wrote" in capsys.readouterr().out
    table = Rotary(16, base=500000).table(torch.arange(64))
    assert torch.equal(torch.load(path)["cos_sin_cache"], table.flatten(1))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vlm", "exact", *ENCODING], "did you mean 'vllm'?"),
        (["vllm", "exact"], "computes what a configuration says"),
        (["vllm", "exact", "--encoding", "ALiBi(8)"], "is no Rotary"),
        (["torchtune", "exact", "--encoding", "Rotary(Linear(Geometric(8), 2))"], "has no Linear"),
    ],
)
def test_what_cannot_be_compared_ends_with_2(words, said, capsys):
    assert main(["parity", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
