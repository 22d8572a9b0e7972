"""Processes that stand by as ranks, so that hundreds of cases share one start."""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from datetime import timedelta
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

MOST = 4
ROOT = Path(__file__).parents[2]
PATIENCE = 100  # seconds for one case


def environment() -> dict[str, str]:
    """For a process of its own that finds what this one finds."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}


class Ranks:
    """Four processes joined by gloo; the first one, two or three of them serve as smaller groups.

    One process imports torch and forks into all of them, before any of them has a thread.
    """

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        with Listener(os.path.join(self.folder, "pipe"), "AF_UNIX") as listener:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.distributed.ranks", self.folder],
                cwd=ROOT,
                env=environment(),
            )
            met = [listener.accept() for _ in range(MOST)]
        self.pipes: dict[int, Connection] = {pipe.recv(): pipe for pipe in met}

    def run(self, world: int, case: str, **arguments) -> list:
        """What ``module:function(group, **arguments)`` returns on each rank; or its error."""
        for rank in range(world):
            self.pipes[rank].send((world, case, arguments))
        answers = [self._answer(rank) for rank in range(world)]
        failed = [f"rank {rank}: {error}" for rank, (error, _) in enumerate(answers) if error]
        assert not failed, "\n".join(failed)
        return [result for _, result in answers]

    def _answer(self, rank: int):
        if not self.pipes[rank].poll(PATIENCE):
            return "no answer", None
        try:
            return self.pipes[rank].recv()
        except (EOFError, OSError):
            return "it ended", None

    def close(self) -> None:
        for pipe in self.pipes.values():
            pipe.send(None)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def serve(rank: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    pipe = Client(os.path.join(folder, "pipe"), "AF_UNIX")
    pipe.send(rank)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{os.path.join(folder, 'store')}", rank=rank, world_size=MOST,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    groups = {world: dist.new_group(list(range(world))) for world in (1, 2, 3)}
    groups[MOST] = dist.group.WORLD
    while (asked := pipe.recv()) is not None:
        world, case, arguments = asked
        module, name = case.split(":")
        try:
            function = getattr(importlib.import_module(module), name)
            pipe.send((None, function(groups[world], **arguments)))
        except Exception:
            pipe.send((traceback.format_exc(), None))
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    import torch

    torch.set_num_threads(1)
    importlib.import_module("tests.distributed.cases")
    forked = []
    for rank in range(MOST):
        child = os.fork()
        if not child:
            try:
                serve(rank, sys.argv[1])
            finally:
                os._exit(0)
        forked.append(child)
    for child in forked:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
