"""What must work wherever posenc is installed: python .ci/smoke.py C|torch"""

import json
import math
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import torch

import posenc

kernels = sys.argv[1]
here = Path(sys.prefix).resolve()
assert here in Path(posenc.__file__).resolve().parents, f"{posenc.__file__} is not of {here}"
assert files("posenc"), "the package has no list of its files"


def command(*arguments: str) -> str:
    ran = subprocess.run([here / "bin" / "posenc", *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


table = posenc.Sinusoidal(4, base=100.0).table(torch.tensor([0, 1, 10**6]))
for row, p in zip(table.tolist(), [0, 1, 10**6], strict=True):
    wanted = [math.sin(p), math.cos(p), math.sin(p / 10), math.cos(p / 10)]
    assert all(abs(a - b) < 1e-6 for a, b in zip(row, wanted, strict=True)), (p, row)
q, k = posenc.Rotary(8)(torch.ones(1, 2, 3, 8), torch.ones(1, 2, 3, 8))
assert torch.allclose(q.norm(dim=-1), torch.full((1, 2, 3), 8**0.5))

found = json.loads(command("info", "--format", "json"))
assert ("native C" in found["kernels"]) == (kernels == "C"), found["kernels"]
assert "0.8415" in command("table", "--length", "2", "--dim", "4")
print(f"works: {found['kernels']}")
