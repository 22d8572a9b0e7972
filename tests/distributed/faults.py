"""A rank that goes wrong in the midst of attention; run as ``python -m tests.distributed.faults``.

Every process has one line to say how it ended, and an exit status.
"""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from posenc import ALiBi, Positional, attention
from posenc.distributed import Shards

WRONG = 1  # the rank that goes wrong
SECONDS = 4  # until the others give up


def main(fault: str, spread: str, rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2,
        timeout=timedelta(seconds=SECONDS),
    )  # fmt: skip
    shards = Shards(length=64, layout="zigzag")
    x = torch.randn(1, 2, shards.local, 8, requires_grad=True)
    positional = Positional(scores=ALiBi(2))
    attention(x, x, x, positional=positional, shards=shards, spread=spread).sum().backward()
    if rank == WRONG:
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "raising":
            raise ArithmeticError("this rank has gone wrong")
        if fault == "stalled":
            time.sleep(3 * SECONDS)
            os._exit(7)
    attention(x, x, x, positional=positional, shards=shards, spread=spread).sum().backward()
    print("it ended as if nothing had been wrong")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
