"""Rotary under the signatures of others: the one proposed for torch, torchtune's, torchtitan's.

Each takes and gives what its namesake does, and differs only in being exact: angles are those of
integer phases, rounded once, at any position.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.frequencies import Geometric, Llama3, Schedule, YaRN
from posenc.guards import demand, graph_looks, may_look
from posenc.kernels.rotary.front import RotaryLayout, rotate
from posenc.kernels.rows import rows_at
from posenc.numerics.pairing import Pairing
from posenc.positions import checked, consecutive
from posenc.transformer.tables import Tables

BASE = 10_000


def rotary_embedding(
    x: Float[Tensor, "batch heads seq head_dim"],
    cos: Float[Tensor, "..."],
    sin: Float[Tensor, "..."],
    position_ids: Int[Tensor, "batch seq"] | None = None,
    *,
    interleaved: bool = False,
) -> Float[Tensor, "batch heads seq head_dim"]:
    """Each pair of channels (a, b) of ``x`` as (a cos − b sin, b cos + a sin).

    It computes in float32 at least and rounds once; dtype and shape stay those of ``x``.

    Args:
        x: Queries or keys, all channels of which rotate.
        cos: ``[rows, head_dim / 2]`` with ``position_ids``; else what broadcasts against
            ``[batch, heads, seq, head_dim / 2]``.
        sin: As ``cos``.
        position_ids: The row of each token.
        interleaved: Whether channels 2i and 2i + 1 are a pair; else i and i + head_dim / 2.

    Reference:
        ``torch.nn.functional.rotary_embedding`` as proposed in pytorch/pytorch#187286.

    Example:
        >>> cos, sin = Rotary(64).table(torch.arange(128)).unbind(-2)
        >>> rotary_embedding(torch.randn(2, 8, 16, 64), cos[:16], sin[:16]).shape
        torch.Size([2, 8, 16, 64])
    """
    cos, sin = (each.to(working_dtype(x.dtype)) for each in (cos, sin))
    if position_ids is not None:
        ids = checked(position_ids, "position_ids")
        cos, sin = rows_at(cos, ids), rows_at(sin, ids)
    elif cos.ndim > 2 and cos.shape[-3] != 1:  # heads have angles of their own
        return rotate(x, cos, sin, pairing="interleaved" if interleaved else "half")
    elif cos.ndim > 2:
        cos, sin = cos.squeeze(-3), sin.squeeze(-3)
    rows = torch.broadcast_shapes(cos.shape, (x.shape[-2], 1))
    table = torch.stack([cos.expand(rows), sin.expand(rows)], -2)
    return rotate_heads(x, table, RotaryLayout(interleaved, False, True), x.shape[-1], x.shape[-1])


class RotaryPositionalEmbeddings(nn.Module):
    """torchtune's module: ``[batch, seq, heads, head_dim]``, channels 2i and 2i + 1 a pair.

    A table is kept where ``rotary`` and ``tables`` show it, never in a state dict. Positions from
    ``max_seq_len`` on are served as well: a table is computed for them.

    Args:
        dim: Width of a head.
        max_seq_len: The most rows to keep.
        base: Of the powers; None once built of ``frequencies``.
        frequencies: A schedule in place of these, as ``Llama3(Geometric(128, 500_000), 8)`` for
            torchtune's ``Llama3ScaledRoPE``.

    Reference:
        torchtune/modules/position_embeddings.py.

    Example:
        >>> rope = RotaryPositionalEmbeddings(64, max_seq_len=2048)
        >>> rope(torch.randn(2, 16, 8, 64), input_pos=torch.arange(16).expand(2, 16)).shape
        torch.Size([2, 16, 8, 64])
    """

    def __init__(
        self,
        dim: int,
        max_seq_len: int = 4096,
        base: int | float = BASE,
        *,
        frequencies: Schedule | None = None,
    ):
        super().__init__()
        given = Geometric(dim, base) if frequencies is None else frequencies
        self.rotary = Rotary(given, head_dim=dim, pairing="interleaved", heads_first=False)
        self.dim, self.max_seq_len = dim, max_seq_len
        self.base = base if frequencies is None else None
        self.tables = Tables(max_seq_len)

    def forward(
        self,
        x: Float[Tensor, "batch seq heads head_dim"],
        *,
        input_pos: Int[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch seq heads head_dim"]:
        """``x`` rotated; without ``input_pos``, tokens stand at 0, 1, 2, …"""
        if input_pos is None:
            input_pos = consecutive(x.shape[1], device=x.device)
        positions = checked(input_pos, "input_pos")
        rows = self.tables.rows(self.rotary, positions, dtype=working_dtype(x.dtype))
        return self.rotary.encode_queries(x, rows)


class ComplexRoPE(nn.Module):
    """torchtitan's module of complex numbers: channels 2i and 2i + 1 are a pair.

    As there, YaRN has no attention factor: the model's softmax scale has it.

    Args:
        config: What has the fields of torchtitan's ``RoPE.Config``: ``dim``,
            ``max_context_length``, ``theta``, ``scaling`` and what belongs to it.

    Reference:
        torchtitan/models/common/rope.py.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(dim=64, max_context_length=2048, theta=5e5, scaling="none")
        >>> q, k = ComplexRoPE(config)(torch.randn(16, 8, 64), torch.randn(16, 2, 64))
        >>> q.shape, k.shape
        (torch.Size([16, 8, 64]), torch.Size([16, 2, 64]))
    """

    pairing: Pairing = "interleaved"

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.rotary = Rotary(_schedule(config), pairing=self.pairing, heads_first=False)
        self.tables = Tables(config.max_context_length)

    def forward(
        self,
        query: Float[Tensor, "tokens heads head_dim"],
        key: Float[Tensor, "tokens kv_heads head_dim"],
        positions: Int[Tensor, "tokens"] | None = None,
    ) -> tuple[Float[Tensor, "tokens _ head_dim"], Float[Tensor, "tokens _ head_dim"]]:
        """Both rotated; without ``positions``, tokens stand at 0, 1, 2, …"""
        length, dtype = self.config.max_context_length, working_dtype(query.dtype)
        if positions is None:
            positions = consecutive(query.shape[0], device=query.device)
        positions = checked(positions)
        inside = (positions >= 0) & (positions < length)
        words = f"Positions leave 0 … {length - 1}, for which this module was built."
        if graph_looks(positions):
            demand(inside.all(), words)
        elif may_look(positions) and not inside.all():
            raise IndexError(words)
        rows = self.tables.rows(self.rotary, positions, dtype=dtype, below=length)
        return self.rotary.encode_queries(query, rows), self.rotary.encode_keys(key, rows)


class CosSinRoPE(ComplexRoPE):
    """torchtitan's module of cosines and sines: channels i and i + head_dim / 2 are a pair.

    Args:
        config: As of ``ComplexRoPE``; torchtitan's own has no ``"llama"`` here, this one has.

    Reference:
        torchtitan/models/common/rope.py.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(dim=64, max_context_length=2048, theta=5e5, scaling="none")
        >>> CosSinRoPE(config).rotary
        Rotary(Geometric(dim=64, base=500000.0), heads_first=False)
    """

    pairing: Pairing = "half"


def _schedule(config: Any) -> Schedule:
    plain = Geometric(config.dim, config.theta)
    if config.scaling == "none" or (config.scaling == "yarn" and config.rope_factor <= 1.0):
        return plain
    if config.scaling == "llama":
        low, high = config.low_freq_factor, config.high_freq_factor
        trained = config.original_max_position_embeddings
        return Llama3(plain, config.scaling_factor, low=low, high=high, trained_length=trained)
    if config.scaling == "yarn":
        names = ("beta_fast", "beta_slow", "truncate")
        borders = {name: getattr(config, name) for name in names}
        return YaRN(plain, config.rope_factor, config.original_seq_len, attention=1.0, **borders)
    raise ValueError(f'scaling is {config.scaling!r}; it must be "none", "llama" or "yarn".')
