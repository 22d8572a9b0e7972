"""Workers of a DataLoader, forked after the kernels in C have had threads, compute the same."""

import subprocess
import sys

import pytest

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
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return work(index)

here = [work(seed) for seed in range(4)]
made = DataLoader(Rows(), num_workers=2, batch_size=None, multiprocessing_context="fork")
assert all(torch.equal(a, b) for a, b in zip(here, made, strict=True))
"""


@pytest.mark.slow("a process of its own")
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_workers_forked_behind_threads_neither_hang_nor_differ():
    ran = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=90)
    assert ran.returncode == 0, ran.stderr
