"""Attention whose heads are cut among ranks for good, with torch's ``parallelize_module``."""

from typing import cast

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)

from posenc.distributed.own_heads import check_by_head, own_heads
from posenc.distributed.shards import group_of
from posenc.encodings.base import ScoreEncoding
from posenc.transformer.attention import MultiHeadAttention
from posenc.transformer.block import Block
from posenc.transformer.encoder import Encoder


class HeadParallel(ParallelStyle):
    """A style for ``parallelize_module``: every rank computes some of the heads of each layer.

    Linear maps into heads and into feed-forward layers are cut by column, those out of them by row,
    as Megatron-LM does; encodings of scores are built for this rank's heads alone (``own_heads``).
    Encodings of tokens, and of queries and keys, act on what a rank has. Every rank is given the
    same tokens, and gives the same results.

    It serves an ``Encoder``, with the names of its state dict as they were, and a
    ``MultiHeadAttention``, whose encodings its caller cuts with ``own_heads``.

    Dropout is drawn from each rank's own generator, and nothing compares these: ranks with other
    seeds drop other elements of the tokens that they share, and part ways. Set one seed on every
    rank, or build the encoder with ``dropout=0.0``.

    Reference:
        Shoeybi et al. 2019, "Megatron-LM", section 3 (arXiv:1909.08053).

    Example:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from torch.distributed.device_mesh import init_device_mesh
        >>> from posenc import ALiBi, Positional
        >>> if not dist.is_initialized():
        ...     dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
        >>> encoder = Encoder(16, heads=4, depth=2, positional=Positional(scores=ALiBi(4)))
        >>> encoder = parallelize_module(encoder, mesh["tp"], HeadParallel())
        >>> encoder(torch.randn(1, 5, 16)).shape
        torch.Size([1, 5, 16])
    """

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if isinstance(module, MultiHeadAttention):
            _check_heads(module, device_mesh)
            self._cut_attention(module, device_mesh)
        elif isinstance(module, Encoder):
            self._cut_encoder(module, device_mesh)
        else:
            raise TypeError(
                f"HeadParallel was given a {type(module).__name__}; it cuts an Encoder or a "
                f"MultiHeadAttention."
            )
        return module

    def _cut_attention(self, attention: MultiHeadAttention, mesh: DeviceMesh) -> None:
        world = group_of(mesh).size()
        columns = {name: ColwiseParallel() for name in ("queries", "keys", "values")}
        self._cut(attention, mesh, {**columns, "output": RowwiseParallel()})
        attention.keep_one_of(world)

    def _cut_encoder(self, encoder: Encoder, mesh: DeviceMesh) -> None:
        blocks = [cast(Block, block) for block in encoder.blocks]
        for block in blocks:
            _check_heads(block.attention, mesh)
        for layer in encoder.layers:
            for encoding in layer.scores:
                check_by_head(cast(ScoreEncoding, encoding))
            _check_learning(layer.queries_keys)
        for block in blocks:
            self._cut_attention(block.attention, mesh)
            plan = {"expand": ColwiseParallel(), "contract": RowwiseParallel()}
            self._cut(block.feed_forward, mesh, plan)
        cut: dict[ScoreEncoding, nn.Module] = {}
        for layer in dict.fromkeys(encoder.layers):
            for index, encoding in enumerate(cast("list[ScoreEncoding]", list(layer.scores))):
                if encoding not in cut:
                    cut[encoding] = own_heads(encoding, mesh)
                layer.scores[index] = cut[encoding]

    def _cut(self, module: nn.Module, mesh: DeviceMesh, plan: dict[str, ParallelStyle]) -> None:
        parallelize_module(module, mesh, plan, src_data_rank=self.src_data_rank)


def _check_heads(attention: MultiHeadAttention, mesh: DeviceMesh) -> None:
    world = group_of(mesh).size()
    for name in ("heads", "kv_heads"):
        if getattr(attention, name) % world:
            raise ValueError(
                f"{name} is {getattr(attention, name)}, which {world} ranks cannot share evenly."
            )


def _check_learning(encodings: nn.ModuleList) -> None:
    for encoding in encodings:
        if next(encoding.parameters(), None) is not None:
            raise TypeError(
                f"{type(encoding).__name__} has parameters that all heads share, which would get "
                f"the gradients of this rank's heads alone."
            )
