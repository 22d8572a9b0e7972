"""Attention over 1, 2 and 4 processes: time and bytes moved of each way, and how they grow.

    python -m benchmarks.distributed [--lengths 1024 4096] [--worlds 1 2 4] [--json FILE]

Times stand beside those of one process on the same machine in the same run, and beside an
all-gather of keys and values alone. Processes share the cores, so on few of them this shows what
cutting costs, and never what it gains.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist

from posenc import ALiBi, Positional, Rotary, T5Bias, attention
from posenc.distributed import Shards
from posenc.distributed.collectives import everyones

HEADS, WIDTH = 8, 64
LENGTHS, WORLDS, ROUNDS = (1024, 2048, 4096, 8192, 16384, 32768), (1, 2, 4), 3
ENCODINGS = {
    "rotary": lambda: Positional(queries_keys=Rotary(WIDTH)),
    "ALiBi": lambda: Positional(scores=ALiBi(HEADS)),
    "T5": lambda: Positional(scores=T5Bias(HEADS)),
}


def main() -> None:
    options = _options()
    found = []
    print(__doc__.split("\n\n")[2])
    for world in options.worlds:
        found += _of_processes(world, options.lengths)
    alone = {(row["length"], row["encoding"]): row["seconds"] for row in found
             if row["spread"] == "one process"}  # fmt: skip
    print(f"{'length':>7} {'ranks':>5}  {'encoding':<8}{'way':<14}{'× one':>7}{'× gather':>9}"
          f"{'moved':>10}")  # fmt: skip
    for row in found:
        base = alone.get((row["length"], row["encoding"]))
        ratio = "–" if base is None else f"{row['seconds'] / base:.2f}"
        gathers = "–" if not row["gather"] else f"{row['seconds'] / row['gather']:.1f}"
        print(f"{row['length']:>7} {row['world']:>5}  {row['encoding']:<8}{row['spread']:<14}"
              f"{ratio:>7}{gathers:>9}{row['moved'] / 1e6:>8.1f} MB")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def _of_processes(world: int, lengths: list[int]) -> list[dict]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        processes = [context.Process(target=_rank, args=(rank, world, folder, lengths, queue))
                     for rank in range(world)]  # fmt: skip
        for process in processes:
            process.start()
        rows = queue.get()
        for process in processes:
            process.join()
    return rows


def _rank(rank: int, world: int, folder: str, lengths: list[int], queue) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.path.join(folder, 'store')}",
                            rank=rank, world_size=world)  # fmt: skip
    rows = [row for length in lengths for row in _measured(length)]
    if rank == 0:
        queue.put(rows)
    dist.barrier()
    dist.destroy_process_group()


def _measured(length: int) -> list[dict]:
    """A forward and a backward pass of every encoding by every way; the slowest rank's time."""
    shards = Shards(length=length, layout="zigzag")
    torch.manual_seed(0)
    whole = [torch.randn(1, HEADS, length, WIDTH) for _ in range(3)]
    part = [shards.cut(t, 2).requires_grad_() for t in whole]
    keys = torch.cat([t.detach() for t in part[1:]])
    bare = _slowest(lambda: everyones(keys, shards.group)) if shards.world > 1 else 0.0
    rows = []
    for name, built in ENCODINGS.items():
        positional = built()

        def ran(content, **cut):
            attention(*content, is_causal=True, positional=positional, **cut).sum().backward()  # noqa: B023

        ways = {way: lambda way=way: ran(part, shards=shards, spread=way)
                for way in ("gather", "heads", "ring")}  # fmt: skip
        if shards.world == 1:
            given = [t.requires_grad_() for t in whole]
            ways = {"one process": lambda: ran(given)}  # noqa: B023
        for way, call in ways.items():
            rows.append({
                "length": length, "world": shards.world, "encoding": name, "spread": way,
                "seconds": _slowest(call), "gather": bare, "moved": _moved(shards, way),
            })  # fmt: skip
    return rows


def _moved(shards: Shards, way: str) -> int:
    """Bytes that come to a rank: forward, and backward again with gradients."""
    token = 4 * HEADS * WIDTH * shards.local
    others = shards.world - 1
    if way == "one process":
        return 0
    if way == "heads":  # queries, keys, values and results, there and back
        return 2 * 4 * token * others // shards.world
    # A ring sends keys and values once more backward.
    return (6 if way == "ring" else 4) * token * others


def _slowest(call) -> float:
    call()
    times = []
    for _ in range(ROUNDS):
        dist.barrier()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    slowest = torch.tensor(median(times))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
