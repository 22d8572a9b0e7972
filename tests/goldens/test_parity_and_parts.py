"""Comparisons of rotary implementations, and verdicts on models and on ours, held by value.

``python -m tests.goldens.test_parity_and_parts`` writes them anew.
"""

import json

import pytest
import torch
from tests.audit.zoo.right.rotary import VLLM, LlamaRotary
from tests.goldens.written import known, near, write
from tests.oracle_models import building

from posenc import ALiBi, LearnedGrid, LogTemperature, Rotary, Sinusoidal, T5Bias
from posenc.audit import check, parity
from posenc.frequencies import Geometric, Linear

HELD = known("parity_and_parts")
SMALL, SCALED = Rotary(16), Rotary(Linear(Geometric(64), 3))
PARTIAL = Rotary(8, head_dim=16)
GRANITE = {"model_type": "granite", "hidden_size": 256, "num_attention_heads": 4}
WIDE = {"dtype": torch.float32, "length": 64}

PARITIES = {
    "vllm flash": ("vllm", "flash-attention", {"encoding": SMALL, "length": 200}),
    "vllm sglang": ("vllm", "sglang", {"encoding": SMALL, "length": 200}),
    "scaled": ("vllm", "transformers", {"encoding": SCALED, "length": 500}),
    "torchtune": ("transformers", "torchtune", {"encoding": PARTIAL, **WIDE}),
    "exact": ("exact", "mlx", {"encoding": SMALL, "length": 300, "seed": 3}),
    "granite": ("vllm", "megatron", {"config": GRANITE, "length": 40}),
    "own": (VLLM, LlamaRotary, WIDE),
    "own and profile": (LlamaRotary, "sglang", {"encoding": Rotary(32), "length": 50}),
}
TYPES = ("llama", "mpt", "gemma3_text", "deepseek_v3", "gpt2", "t5", "pixtral", "glm4v_text")
OURS = {
    "sinusoidal": Sinusoidal(16), "rotary": SMALL, "alibi": ALiBi(4), "t5": T5Bias(4),
    "grid": LearnedGrid(8, (4, 4), prefix=1), "temperature": LogTemperature(2),
}  # fmt: skip
CASES = [
    *(("parity", name) for name in PARITIES),
    *(("type", name) for name in TYPES),
    *(("ours", name) for name in OURS),
]
SLOW = pytest.mark.slow("more models")


def made(kind: str, name: str):
    """What is held of a case, without words for people."""
    if kind == "parity":
        a, b, given = PARITIES[name]
        found = parity(a, b, **given).as_dict()
        return {n: v for n, v in found.items() if n not in ("a", "b", "encoding", "notes")}
    report = check(building.config_of(name) if kind == "type" else OURS[name])
    asked = {each.question: each.outcome for each in report.verdicts}
    faults = sorted(fault.name for fault in report.found)
    identity = report.identity.replace(": equal to", ";").split("; ")[0] if kind == "type" else ""
    return {"asked": asked, "faults": faults, "status": report.status, "identity": identity}


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*case, marks=SLOW if case[1] in TYPES[2:] else ()) for case in CASES],
)
def test_nothing_changed(kind, name):
    if kind == "parity" and torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("torch's cosines are others on a processor without vector units")
    now = json.loads(json.dumps(made(kind, name)))
    assert near(now, HELD[f"{kind} {name}"], absolute=1e-12), now


if __name__ == "__main__":
    held = {f"{kind} {name}": made(kind, name) for kind, name in CASES}
    write("parity_and_parts", held, indent=1)
