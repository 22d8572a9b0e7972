"""Doors from torch: its encoder, and rotary under the signatures of torch, torchtune, torchtitan.

What rotates takes and gives what its namesake does, and differs only in being exact: angles are
those of integer phases, rounded once, at any position.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from posenc.encodings.base import working_dtype
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.frequencies import Geometric, Llama3, Schedule, YaRN
from posenc.guards import demand, graph_looks, may_look
from posenc.kernels.rotary.front import RotaryLayout, rotate
from posenc.kernels.rows import rows_at
from posenc.numerics.pairing import Pairing
from posenc.positions import checked, consecutive
from posenc.transformer import Encoder
from posenc.transformer.tables import Tables


class Taken(NamedTuple):
    """Where a parameter comes from."""

    of: Tensor  # another one
    part: int = 0  # which of so many equal parts of its rows
    parts: int = 1  # how many there are


def encoder_from_torch(
    module: nn.TransformerEncoder, *, positional: Positional | None = None, is_causal: bool = False
) -> Encoder:
    """An ``Encoder`` with the weights of a ``torch.nn.TransformerEncoder``.

    Without encodings it computes what the module computes. Three things differ: masks are true
    where a token is *real* (``padding_mask=~src_key_padding_mask``), causality belongs to the
    encoder, and x is always ``[batch, seq, dim]``. Each weight is a copy that learns if the
    module's does, in its dtype; layers that share theirs share them here. Hooks stay behind.

    Example:
        >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=64, batch_first=True)
        >>> encoder = encoder_from_torch(nn.TransformerEncoder(layer, num_layers=2))
        >>> encoder.dim, encoder.heads, encoder.depth
        (16, 4, 2)
    """
    layers: list[Any] = list(module.layers)
    first, norm = layers[0], module.norm
    if {*map(type, layers)} != {nn.TransformerEncoderLayer}:
        raise TypeError("A layer of module is no plain torch.nn.TransformerEncoderLayer.")
    if len({*map(repr, layers)}) > 1:
        raise ValueError("Layers differ in sizes, eps or dropout.")
    encoder = Encoder(
        first.self_attn.embed_dim,
        first.self_attn.num_heads,
        len(layers),
        positional=positional,
        inner=first.linear1.out_features,
        norm="pre" if first.norm_first else "post",
        activation=first.activation,
        dropout=getattr(first.dropout, "p", 0.0),  # an identity in its place drops nothing
        attention_dropout=first.self_attn.dropout,
        is_causal=is_causal,
        final_norm=norm is not None,
        eps=first.norm1.eps,
        bias=first.linear1.bias is not None,
    ).to(first.linear1.weight)
    each = {f"{i}.{name}": of for i, x in enumerate(layers) for name, of in _weights(x).items()}
    take_over(encoder.blocks, each)
    if encoder.final_norm is not None:
        take_over(encoder.final_norm, _held(norm, first))  # type: ignore[arg-type]
        encoder.final_norm.eps = norm.eps  # type: ignore[union-attr]
    return encoder.train(module.training)


def _weights(layer: nn.TransformerEncoderLayer) -> dict[str, Taken]:
    """Where each parameter of a ``Block`` comes from."""
    attention, weights = layer.self_attn, {}
    for kind in ("weight", "bias"):
        stacked = getattr(attention, f"in_proj_{kind}")
        if stacked is not None:
            for part, name in enumerate(("queries", "keys", "values")):
                weights[f"attention.{name}.{kind}"] = Taken(stacked, part, 3)
    parts = {
        "attention.output": attention.out_proj,
        "attention_norm": layer.norm1,
        "feed_forward.expand": layer.linear1,
        "feed_forward.contract": layer.linear2,
        "feed_forward_norm": layer.norm2,
    }
    for name, part in parts.items():
        weights |= {f"{name}.{key}": taken for key, taken in _held(part, layer).items()}
    return weights


def _held(part: nn.Module, layer: nn.TransformerEncoderLayer) -> dict[str, Taken]:
    """Parameters; γ and β that a norm was built without are 1 and 0, and do not learn."""
    held: dict[str, Tensor] = dict(part.named_parameters())
    if isinstance(part, nn.LayerNorm):
        like, shape = layer.linear1.weight.detach(), part.normalized_shape
        held = {"weight": like.new_ones(shape), "bias": like.new_zeros(shape), **held}
    return {name: Taken(each) for name, each in held.items()}


def take_over(model: nn.Module, given: Mapping[str, Taken]) -> None:
    """Give ``model`` copies of parameters: their numbers, dtype, device, and whether they learn.

    What was one parameter in several places is one here, too.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    if own.keys() != given.keys():
        unlike = ", ".join(sorted(own.keys() ^ given.keys()))
        raise ValueError(f"{unlike}: there or here alone; parameters are taken over one for one.")
    copies: dict[tuple[int, int, int], nn.Parameter] = {}
    for name, (of, part, parts) in given.items():
        key = (id(of), part, parts)
        if key not in copies:
            numbers = of.detach().chunk(parts)[part].clone()
            copies[key] = nn.Parameter(numbers, requires_grad=of.requires_grad)
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, copies[key])


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
        base: int | float = 10_000,
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
