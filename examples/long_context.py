"""Train a small byte-level model on long rows of this package's own text, cut among processes.

    torchrun --standalone --nproc-per-node 4 examples/long_context.py
    python examples/long_context.py            # one process: the same losses

Each file is a document; rows are packed, and every process reads its part of every row.

Seen at these sizes, rows of 8192 bytes and two layers of width 64: losses of 5.73012, 5.26125 and
4.81605 on four processes, and 5.73012, 5.26124 and 4.81605 on one. With ``--scores t5``, by
``--spread ring`` on four: 5.81274 and 5.29196 on both.
"""

import argparse
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

import posenc
from posenc import ALiBi, Positional, Rotary, T5Bias
from posenc.distributed import Shards
from posenc.positions import collate
from posenc.transformer import Encoder

SCORES = {"alibi": ALiBi, "t5": T5Bias, "none": None}


class Model(nn.Module):
    """Bytes in, scores of the next byte out."""

    def __init__(self, dim: int, heads: int, depth: int, scores: str):
        super().__init__()
        bias = SCORES[scores]
        positional = Positional(
            queries_keys=Rotary(dim // heads), scores=() if bias is None else bias(heads)
        )
        self.embedding = nn.Embedding(257, dim)
        self.encoder = Encoder(dim, heads, depth, positional=positional, is_causal=True, norm="pre")
        self.head = nn.Linear(dim, 257)

    def forward(self, ids: torch.Tensor, shards: Shards, spread: str | None) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(ids), shards=shards, spread=spread))


def rows(length: int) -> list[torch.Tensor]:
    """The sources of this package as documents of bytes, no longer than a row."""
    files = sorted(Path(posenc.__file__).parent.rglob("*.py"))
    return [torch.tensor(list(path.read_bytes()[:length])) for path in files if path.stat().st_size]


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120), **_alone())
    model = Model(options.dim, options.heads, options.depth, options.scores)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    packed = collate(rows(options.length), length=options.length)
    for step in range(options.steps):
        some = slice(step % len(packed.input_ids), step % len(packed.input_ids) + 1)
        ids, documents = packed.input_ids[some], packed.document_ids[some]
        # The next byte of the same document is told before the cut; there is none at its end.
        target = ids.roll(-1, 1).masked_fill(documents != documents.roll(-1, 1), 256)
        real = packed.padding_mask[some]

        shards = Shards(layout=options.layout, document_ids=documents, padding_mask=real)
        ids, target = shards.cut(ids), shards.cut(target)
        scores = model(ids, shards, options.spread)

        losses = F.cross_entropy(scores.transpose(1, 2), target, reduction="none")
        own = losses if shards.padding_mask is None else losses[shards.padding_mask]
        loss = own.sum() / max(1, own.numel()) * shards.weight
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"step {step}  loss {mean:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def _alone() -> dict:
    """What takes the place of torchrun's variables where it was not asked."""
    if "RANK" in os.environ:
        return {}
    return {"store": dist.HashStore(), "rank": 0, "world_size": 1}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--scores", choices=list(SCORES), default="alibi")
    parser.add_argument("--spread", choices=["gather", "heads", "ring"])
    parser.add_argument("--layout", default="zigzag")
    return parser.parse_args()


if __name__ == "__main__":
    main()
    # DTensor's caches keep the group, and a thread of gloo that lets go of a tensor while Python
    # ends aborts the process. So this one ends at once.
    os._exit(0)
