"""The bias of the heads that a rank computes, where heads are cut among ranks for good."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.func import functional_call

from posenc.distributed.collectives import group_of, shared
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.bias import BiasHeads, BiasSum, ScoreBias, bias_apart, take_claims
from posenc.positions import Positions


def own_heads(bias: ScoreEncoding, mesh: DeviceMesh) -> ScoreBias:
    """The bias of this rank's heads, the r-th of as many equal runs of heads as there are ranks.

    ALiBi has the slopes of these heads, T5Bias their columns, KERPLE their parameters: parameters
    that count heads become ``DTensor`` cut along them, under their old names. Where a head depends
    on parameters of all (FIRE, SwinV2Bias), and of some heads of a bias (``bias[2:6]``), every rank
    holds those of the whole, and their gradients add up.
    Ranks begin with the numbers of the first one.

    Args:
        bias: That of the whole model.
        mesh: One dimension, that of ``parallelize_module``.

    Reference:
        Shoeybi et al. 2019, "Megatron-LM", section 3 (arXiv:1909.08053).

    Example:
        >>> import torch.distributed as dist
        >>> from torch.distributed.device_mesh import init_device_mesh
        >>> from posenc import T5Bias
        >>> if not dist.is_initialized():
        ...     dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> bias = own_heads(T5Bias(4), init_device_mesh("cpu", (1,)))
        >>> bias.heads, bias.weight.full_tensor().shape
        (4, torch.Size([32, 4]))
    """
    check_by_head(bias)
    assert isinstance(bias, ScoreBias)
    world = group_of(mesh).size()
    if bias.heads % world:
        raise ValueError(f"{bias.heads} heads cannot be shared evenly among {world} ranks.")
    if isinstance(bias, BiasSum):
        return BiasSum(own_heads(part, mesh) for part in bias.parts)  # type: ignore[arg-type]
    return OwnHeads(bias, mesh)


def check_by_head(encoding: ScoreEncoding) -> None:
    """Raise where an encoding is no bias, whose heads stand apart."""
    beyond = encoding.changes_output or encoding.reads_hidden
    if not isinstance(encoding, ScoreBias) or beyond:
        raise TypeError(f"{type(encoding).__name__} cannot be cut by head; cut tokens by Shards.")


class _Called(nn.Module):
    """A bias whose methods are called by ``forward``, which is what ``functional_call`` takes."""

    def __init__(self, of: ScoreBias):
        super().__init__()
        self.of = of

    def forward(self, method: str, *places: Any, dtype: torch.dtype | None) -> Tensor:
        return getattr(self.of, method)(*places, dtype=dtype)


class OwnHeads(ScoreBias):
    """A bias of this rank's heads; see ``own_heads``."""

    is_relative = takes_reals = has_profile = True

    def __init__(self, bias: ScoreBias, mesh: DeviceMesh):
        super().__init__()
        group = group_of(mesh)
        each = bias.heads // group.size()
        own = slice(group.rank() * each, (group.rank() + 1) * each)
        part = bias_apart(bias, own)
        take_claims(self, bias)
        self.heads, self.training, self.group = each, bias.training, group.group_name
        self.told = f"{own.start} … {own.stop - 1} of {bias!r}"
        self.axes = {} if part is None else dict(bias.head_axes or {})
        # Heads of some heads are those of the whole.
        self.prefix = "of.of." if part is None and not isinstance(bias, BiasHeads) else "of."
        # In a tuple: it computes with the parameters of this module, and is no part of it.
        self.called = (_Called(bias[own] if part is None else part),)
        self._hold(bias, mesh)

    def _hold(self, bias: ScoreBias, mesh: DeviceMesh) -> None:
        """Take the parameters of ``bias`` under their names, those by head cut."""
        for name, p in bias.named_parameters():
            if name not in self.axes:  # the numbers of the first rank, in place: modules keep it
                p.data.copy_(distribute_tensor(p.data, mesh, [Replicate()]).to_local())
        for name, child in bias.named_children():
            self.add_module(name, child)
        for name, p in bias.named_parameters(recurse=False):
            if name in self.axes:
                cut = distribute_tensor(p.data, mesh, [Shard(self.axes[name])])
                p = nn.Parameter(cut, requires_grad=p.requires_grad)  # type: ignore[arg-type]
            self.register_parameter(name, p)

    def _call(self, method: str, *places: Any, dtype: torch.dtype | None) -> Tensor:
        local = {
            self.prefix + name: p.to_local() if name in self.axes else shared(p, self.group)  # type: ignore[attr-defined]
            for name, p in self.named_parameters()
        }
        (called,) = self.called
        called.train(self.training)  # which nobody else tells it
        return functional_call(called, local, (method, *places), {"dtype": dtype})

    @property
    def heads_of(self) -> ScoreBias:  # type: ignore[override]
        """What computes this rank's part, or the whole of which it takes that."""
        return self.called[0].of

    def table(
        self,
        q_positions: Int64[Tensor, "..."] | Positions,
        k_positions: Int64[Tensor, "..."] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """The table of these heads."""
        return self._call("table", q_positions, k_positions, dtype=dtype)

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The profile of these heads."""
        return self._call("profile", distance, dtype=dtype)

    def extra_repr(self) -> str:
        """Which heads."""
        return self.told
