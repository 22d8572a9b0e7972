"""Attention over 1, 2 and 4 processes: time and bytes moved of each way, and how they grow.

    python -m benchmarks.distributed [--lengths 1024 4096] [--worlds 1 2 4] [--encodings ALiBi]
        [--ways gather ring] [--json FILE]

Times stand beside those of one process on the same machine in the same run, and beside an
all-gather of keys and values alone. Processes share the cores, so on few of them this shows what
cutting costs, and never what it gains. Work is the processor's time of all ranks together, which
others on the machine do not lengthen as they lengthen the clock's.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from statistics import median

import torch
import torch.distributed as dist

from posenc import KERPLE, ALiBi, Positional, Rotary, T5Bias, attention
from posenc.distributed import Shards
from posenc.distributed.collectives import everyones

HEADS, WIDTH = 8, 64
WAYS = "gather", "heads", "ring"
LENGTHS, WORLDS, ROUNDS = (1024, 2048, 4096, 8192, 16384, 32768), (1, 2, 4), 3
LONG = 8192
"""From here on one round is enough: a call takes seconds."""
FIRST = 256
"""What runs once before anything is timed."""
ENCODINGS = {
    "rotary": lambda: Positional(queries_keys=Rotary(WIDTH)),
    "ALiBi": lambda: Positional(scores=ALiBi(HEADS)),
    "T5": lambda: Positional(scores=T5Bias(HEADS)),
    "KERPLE": lambda: Positional(scores=KERPLE(HEADS)),
}


def main() -> None:
    options = _options()
    found: list[dict] = []
    print(__doc__.split("\n\n")[2])
    print(f"\n{'':33}{'clock':>18}{'work':>18}\n"
          f"{'length':>7} {'ranks':>5}  {'':<7}{'way':<11}{'× one':>9}{'× gather':>9}"
          f"{'× one':>9}{'× half':>9}{'moved':>12}")  # fmt: skip
    for world in options.worlds:
        for row in _of_processes(world, options):
            found.append(row)
            print(_line(row, found), flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=1) + "\n")


def _line(row: dict, found: list[dict]) -> str:
    """A row, with its times over those of one process and over its own at half the length."""
    alone = _other(found, row, world=1, spread="one process")
    half = _other(found, row, length=row["length"] // 2)
    ratios = [
        (row["seconds"], alone and alone["seconds"]),
        (row["seconds"], row["gather_seconds"]),
        (row["work"], alone and alone["work"]),
        (row["work"], half and half["work"]),
    ]
    told = [f"{made / base:.2f}" if base else "–" for made, base in ratios]
    columns = "".join(f"{ratio:>9}" for ratio in told)
    return (f"{row['length']:>7} {row['world']:>5}  {row['encoding']:<7}{row['spread']:<11}"
            f"{columns}{row['moved'] / 1e6:>9.1f} MB")  # fmt: skip


def _other(found: list[dict], row: dict, **changes: object) -> dict | None:
    wanted = {name: row[name] for name in ("length", "world", "encoding", "spread")} | changes
    return next((r for r in found if all(r[n] == v for n, v in wanted.items())), None)


def _of_processes(world: int, options: argparse.Namespace) -> Iterator[dict]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        given = (world, folder, options, queue)
        processes = [context.Process(target=_rank, args=(r, *given)) for r in range(world)]
        for process in processes:
            process.start()
        while (row := _next(queue, processes)) is not None:
            yield row
        for process in processes:
            process.join()


def _next(queue, processes) -> dict | None:
    """What a rank sends next; an error, not a wait forever, where one ended before its time."""
    while True:
        try:
            return queue.get(timeout=5)
        except Empty:
            ended = [rank for rank, process in enumerate(processes) if process.exitcode]
        if ended:
            for process in processes:
                process.terminate()
            raise RuntimeError(f"Rank {ended[0]} ended with {processes[ended[0]].exitcode}.")


def _rank(rank: int, world: int, folder: str, options: argparse.Namespace, queue) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.path.join(folder, 'store')}",
                            rank=rank, world_size=world)  # fmt: skip
    for _ in _measured(FIRST, options):
        pass
    for length in options.lengths:
        for row in _measured(length, options):
            if rank == 0:
                queue.put(row)
    if rank == 0:
        queue.put(None)
    dist.barrier()
    dist.destroy_process_group()


def _measured(length: int, options: argparse.Namespace) -> Iterator[dict]:
    """A forward and a backward pass of the encodings by the ways that are asked for."""
    shards = Shards(length=length, layout="zigzag")
    torch.manual_seed(0)
    whole = [torch.randn(1, HEADS, length, WIDTH) for _ in range(3)]
    part = [shards.cut(t, 2).requires_grad_() for t in whole]
    keys = torch.cat([t.detach() for t in part[1:]])
    rounds = 1 if length >= LONG else ROUNDS
    bare = _timed(lambda: everyones(keys, shards.group), ROUNDS) if shards.world > 1 else (0.0, 0.0)
    for name in options.encodings:
        positional = ENCODINGS[name]()
        for way, call in _ways(shards, whole, part, positional, options.ways).items():
            seconds, work = _timed(call, rounds)
            yield {
                "length": length, "world": shards.world, "encoding": name, "spread": way,
                "seconds": seconds, "work": work, "gather_seconds": bare[0],
                "gather_work": bare[1], "moved": _moved(shards, way),
            }  # fmt: skip


def _ways(
    shards: Shards,
    whole: list[torch.Tensor],
    part: list[torch.Tensor],
    positional: Positional,
    ways: list[str],
) -> dict[str, Callable[[], None]]:
    def ran(content: list[torch.Tensor], **cut: object) -> None:
        made = attention(*content, is_causal=True, positional=positional, **cut)  # type: ignore[arg-type]
        made.sum().backward()

    if shards.world == 1:
        given = [t.requires_grad_() for t in whole]
        return {"one process": lambda: ran(given)}
    return {way: lambda way=way: ran(part, shards=shards, spread=way) for way in ways}


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


def _timed(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds of the slowest rank, and of the processor in all of them; medians of the rounds."""
    if rounds > 1:
        call()
    clock, work = [], []
    for _ in range(rounds):
        dist.barrier()
        begin, busy = time.perf_counter(), time.process_time()
        call()
        clock.append(time.perf_counter() - begin)
        work.append(time.process_time() - busy)
    slowest, together = torch.tensor(median(clock)), torch.tensor(median(work))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    dist.all_reduce(together)
    return float(slowest), float(together)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--encodings", nargs="+", choices=ENCODINGS, default=list(ENCODINGS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
