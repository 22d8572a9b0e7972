"""The library: which one serves, the same bits from each and from none, and life with processes."""

import os
import subprocess
import sys

import pytest
import torch

from posenc.kernels import library as of

native = pytest.mark.skipif(bool(of.loaded()), reason="no native library was built")
process = pytest.mark.slow("a process of its own")

DIGEST = """
import hashlib, torch
from posenc import Rotary, Sinusoidal
from posenc.kernels.embedding.front import embedded
torch.manual_seed(0)
digest = hashlib.sha256()
def told(*some):
    for x in some: digest.update(x.detach().to(torch.float64).numpy().tobytes())
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
    for pairing in ("half", "interleaved"):
        rotary = Rotary(52, pairing=pairing, head_dim=57)
        q = torch.randn(2, 3, 37, 57, dtype=torch.float64).to(dtype).requires_grad_()
        made = rotary(q, q[:, :1])
        told(*made, *torch.autograd.grad(made, q, [torch.ones_like(x) for x in made]))
    encoding = Sinusoidal(130, scale="sqrt_dim", dropout=0.3)
    told(encoding(torch.randn(3, 50, 130, dtype=torch.float64).to(dtype)))
    weight = torch.randn(9, 130, dtype=torch.float64).to(dtype)  # torch's own bits differ in 32
    told(embedded(torch.randint(9, (3, 50)), weight, dropout=0.3))
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    told(Sinusoidal(130).table(torch.arange(5000) + 2**40, dtype=dtype))
print(digest.hexdigest(), hasattr(torch.ops.posenc, "rotary_both_at_out"))
"""


def python(code: str, **environment: str) -> str:
    """What a program prints in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@process
@native
def test_every_processor_gives_the_same_bits_and_so_does_pure_torch():
    found = torch.backends.cpu.get_cpu_capability().lower()
    names = ["default", "avx2", "avx512"]
    names = names[: names.index(found) + 1] if found in names else ["default"]
    digests = {name: python(DIGEST, ATEN_CPU_CAPABILITY=name) for name in names}
    digests["pure torch"] = python(DIGEST, POSENC_NO_NATIVE="1", POSENC_REQUIRE_NATIVE="")
    digests["one thread"] = python(DIGEST, OMP_NUM_THREADS="1")
    assert len(set(digests.values())) == 1, digests
    assert digests["pure torch"].endswith(" True\n")


FORKED = """
import torch
from torch.utils.data import DataLoader, Dataset
from posenc import Rotary, Sinusoidal
from posenc.positions import consecutive
torch.set_num_threads(2)
LENGTH, rotary, sinusoidal = 4096, Rotary(64), Sinusoidal(64)  # long enough for threads
def work(seed):
    x = torch.randn(1, 4, LENGTH, 64, generator=torch.Generator().manual_seed(seed))
    table = sinusoidal.table(consecutive(LENGTH))
    turned = rotary.encode_queries(x, rotary.table(consecutive(LENGTH)))
    return torch.cat([turned.flatten(), sinusoidal.encode(x[0], table).flatten(), table.flatten()])
class Rows(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return work(index)
here = [work(seed) for seed in range(4)]
made = DataLoader(Rows(), num_workers=2, batch_size=None, multiprocessing_context="fork")
print(all(torch.equal(a, b) for a, b in zip(here, made, strict=True)))
"""


@process
@native
@pytest.mark.skipif(sys.platform != "linux", reason="it forks")
def test_workers_forked_behind_threads_neither_hang_nor_differ():
    assert python(FORKED) == "True\n"
