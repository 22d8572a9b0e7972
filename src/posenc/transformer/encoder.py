"""The encoder: blocks in a row, told in all three places where their tokens stand."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from operator import is_not
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_flag, check_whole
from posenc.backends.base import Backend, ShardedTokens, Sizes, TableBuilder
from posenc.backends.choice import chosen
from posenc.backends.features import readers
from posenc.backends.neighbors import check_scores_know_documents
from posenc.encodings.base import ScoreEncoding, TokenEncoding, working_dtype
from posenc.encodings.positional import Positional
from posenc.encodings.tokens.addition import checked_dropout
from posenc.guards import check_dense
from posenc.positions import Coordinates
from posenc.transformer.block import Block, BlockStages, Norm
from posenc.transformer.dropout import dropped, drops
from posenc.transformer.feed_forward import Activation
from posenc.transformer.identity import Identity, Maker
from posenc.transformer.kv_cache import KeyValueCache
from posenc.transformer.layer_cache import refuse_in_backward
from posenc.transformer.layers import (
    ScoreEncodings,
    check_later,
    check_sizes,
    held,
    once_each,
    queries_keys_of,
    scores_of,
    windows_of,
)
from posenc.transformer.normalization import LayerNorm, NormStages
from posenc.transformer.placement import Placement, placed, placed_in_shards
from posenc.transformer.tables import AttentionTables, Rotations, Tables
from posenc.transformer.version import version_of_all

TokenTables = tuple[tuple[TokenEncoding, Tensor], ...]


@dataclass(frozen=True)
class EncoderStages:
    """Every number of one pass through the encoder.

    Attributes:
        positions: Where the tokens stand, ``[seq]`` or ``[batch, seq]``.
        token_tables: The table of each encoding of the tokens place.
        encoded: The tokens with their positions in them.
        embedding_norm: The norm of these, if the encoder has one there.
        blocks: Inside each block.
        final_norm: The norm of the last block's output, if the encoder has one there.
        output: The result.
    """

    positions: Tensor | Coordinates
    token_tables: tuple[Tensor, ...]
    encoded: Tensor
    embedding_norm: NormStages | None
    blocks: tuple[BlockStages, ...]
    final_norm: NormStages | None
    output: Tensor


class Encoder(nn.Module):
    """Embedded tokens in, tokens that know their context and their place out.

    Each table is computed once a pass and handed down. Tables without parameters are kept in
    ``tables`` and gathered by position. With ``is_causal=True`` it serves as a decoder-only model.

    Args:
        dim: Width of a token.
        heads: Number of query heads.
        depth: Number of blocks.
        positional: The encodings in their three places; none (NoPE) if not given. Where layers
            differ, one ``Positional`` a layer; that of the first layer alone may add to tokens.
        inner: Width inside the feed-forward layers; 4·dim if not given.
        kv_heads: Number of key and value heads; ``heads`` if not given.
        head_dim: Width of a head; dim / heads if not given.
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given, 1.0
            for T5.
        window: How many positions a token sees to each side, its own among them; one for all
            layers, or one a layer (``None``: all).
        norm: ``"post"`` as in Vaswani et al., or ``"pre"``.
        activation: ``"relu"``, ``"gelu"``, or a function.
        dropout: Probability of dropping while training; see ``Block``.
        attention_dropout: That of attention weights, if it is another; 0 where rows are cut among
            devices.
        is_causal: Whether a token sees only itself and the tokens before it in its row.
        embedding_norm: Whether a norm (and dropout) follows the token encodings, as in BERT.
        final_norm: Whether a norm follows the last block; if not given, where ``norm`` is "pre".
        eps: ε of all norms.
        bias: Whether linear maps have a bias.

    Raises:
        ValueError: The sizes do not fit each other, or an encoding was built for other sizes.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.1 (arXiv:1706.03762).

    Example:
        >>> import torch
        >>> from posenc import Positional, Sinusoidal
        >>> encoder = Encoder(dim=16, heads=4, depth=2, positional=Positional(Sinusoidal(16)))
        >>> x = torch.randn(2, 5, 16)
        >>> real = torch.tensor([[False, True, True, True, True], [True] * 5])
        >>> encoder(x, padding_mask=real).shape
        torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        depth: int,
        *,
        positional: Positional | Sequence[Positional] | None = None,
        inner: int | None = None,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        scale: float | None = None,
        window: int | Sequence[int | None] | None = None,
        norm: Norm = "post",
        activation: Activation = "relu",
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        is_causal: bool = False,
        embedding_norm: bool = False,
        final_norm: bool | None = None,
        eps: float = 1e-5,
        bias: bool = True,
    ):
        super().__init__()
        check_whole(0, depth=depth)
        check_whole(dim=dim, heads=heads)
        check_flag(is_causal=is_causal, embedding_norm=embedding_norm, bias=bias)
        if final_norm is not None:
            check_flag(final_norm=final_norm)
        self.dim, self.heads, self.depth, self.is_causal = dim, heads, depth, is_causal
        self.dropout, self.windows = checked_dropout(dropout), windows_of(window, depth)
        self.attention_dropout = (
            self.dropout if attention_dropout is None else checked_dropout(attention_dropout)
        )
        self.positional: Positional | nn.ModuleList = held(positional, depth)
        self.blocks = nn.ModuleList(
            Block(
                dim,
                heads,
                inner,
                kv_heads=kv_heads,
                head_dim=head_dim,
                scale=scale,
                norm=norm,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                eps=eps,
                bias=bias,
            )
            for _ in range(depth)
        )
        final_norm = norm == "pre" if final_norm is None else final_norm
        self.embedding_norm = LayerNorm(dim, eps) if embedding_norm else None
        self.final_norm = LayerNorm(dim, eps) if final_norm else None
        self.embedding_dropout = nn.Dropout(dropout) if embedding_norm else None
        self.tables = Tables()
        self._identity = Identity()
        self._encodings: tuple[nn.Module, ...] = tuple(self._held())
        self._sizes = dim, heads, dim // heads if head_dim is None else head_dim
        self._check_layers()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "is_causal":
            check_flag(is_causal=value)
        super().__setattr__(name, windows_of(value, self.depth) if name == "windows" else value)

    @property
    def layers(self) -> tuple[Positional, ...]:
        """The encodings of each block."""
        if isinstance(self.positional, Positional):
            return (self.positional,) * self.depth
        return tuple(cast("Sequence[Positional]", self.positional))

    @property
    def first(self) -> Positional:
        """The encodings of the first block, whose tokens are those of the encoder."""
        return self.layers[0] if self.depth else cast(Positional, self.positional)

    def _held(self) -> list[nn.Module]:
        places = (place for layer in self.layers for place in layer.children())
        return [encoding for place in places for encoding in cast(nn.ModuleList, place)]

    @property
    def identity(self) -> Identity:
        """Who it is, for caches; another once its encodings are others."""
        encodings = self._held()
        if len(encodings) != len(self._encodings) or any(map(is_not, encodings, self._encodings)):
            self._identity, self._encodings = Identity(), tuple(encodings)
        return self._identity

    def forward(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Int64[Tensor, "..."] | Coordinates | None = None,
        *,
        padding_mask: Bool[Tensor, "batch seq"] | None = None,
        document_ids: Int64[Tensor, "batch seq"] | None = None,
        cache: KeyValueCache | None = None,
        shards: ShardedTokens | None = None,
        spread: str | None = None,
    ) -> Float[Tensor, "batch seq dim"]:
        """Encode ``x``; shape and dtype stay those of ``x``.

        Args:
            x: Embedded tokens.
            positions: ``[seq]`` or ``[batch, seq]``, whole or ``Coordinates``. If not given, each
                row counts its real tokens from 0 (from the next position behind a cache), and each
                document its own.
            padding_mask: True where a token is real, False at padding, on whichever side.
                Padding is seen by no token; what stands in its own place afterwards means nothing.
            document_ids: For packed rows: tokens see those with the same id, and a new document
                begins where the id changes.
            cache: What earlier calls left; the tokens of ``x`` follow them, and are added to it.
                One built with ``shards=KeyShards(group)`` keeps a part of them on each device.
            shards: Where rows are cut among devices, as ``posenc.distributed.Shards`` has it; ``x``
                holds this device's tokens. Padding and documents are told to ``shards``.
            spread: How queries and keys of all devices meet; see ``posenc.attention``.

        Raises:
            TypeError: Positions or ids are not integers, the mask is not boolean, or ``cache`` is
                of another kind.
            ValueError: A shape does not fit, the arguments exclude each other, or ``cache`` was
                filled by another encoder, or by this one with other encodings, weights or
                settings.
            RuntimeError: It is called inside torch's ``context_parallel``, or with a cache inside a
                backward pass outside of which it was filled.
        """
        _check_kind(cache)
        _check_depth(cache, len(self.blocks))
        _check_kept(cache, len(self.blocks))
        graph = torch.compiler.is_compiling()  # which has no errors of its own to undo
        with nullcontext() if cache is None or graph else cache.undone_on_error():
            drop, begun = None, False
            if cache is not None:
                refuse_in_backward(cache)
                begun = cache.maker is None
                cache.serve(Maker(self.identity, version_of_all(self)))
            if shards is None:
                placement = self._placed(x, positions, padding_mask, document_ids, cache)
            else:
                _check_alone(padding_mask, document_ids)
                placement = self._placed_in_shards(x, positions, shards, cache)
                padding_mask = shards.padding_mask
                if drops(self):
                    drop = shards.hidden_dropout()
            dtype = x.dtype
            x = self._encoded(x, self._token_tables(x, placement), padding_mask)
            if self.embedding_norm is not None:
                assert self.embedding_dropout is not None
                x = dropped(self.embedding_dropout, self.embedding_norm(x), drop)
            tables = self._chosen_tables(x, placement, spread)
            for index, block in enumerate(self.blocks):
                layer = None if cache is None else cache.layer(index)
                of_block = {} if drop is None else {"drop": drop.of_block(index)}
                x = block(x, tables=tables[index], cache=layer, **of_block)
            if begun and cache is not None:  # parts of others may settle while they first run
                cache.maker = Maker(self.identity, version_of_all(self))
            return (x if self.final_norm is None else self.final_norm(x)).to(dtype)

    def stages(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Int64[Tensor, "..."] | Coordinates | None = None,
        *,
        padding_mask: Bool[Tensor, "batch seq"] | None = None,
        document_ids: Int64[Tensor, "batch seq"] | None = None,
    ) -> EncoderStages:
        """The same pass with every number between, for whole sequences; arguments as above."""
        placement = self._placed(x, positions, padding_mask, document_ids, None)
        dtype, token_tables = x.dtype, self._token_tables(x, placement)
        x = encoded = self._encoded(x, token_tables, padding_mask)
        embedding_norm = None
        if self.embedding_norm is not None:
            assert self.embedding_dropout is not None
            embedding_norm = self.embedding_norm.stages(x)
            x = self.embedding_dropout(embedding_norm.scaled)
        tables, blocks = self._attention_tables(x, placement), []
        masks = once_each(self.windows, lambda w: placement.specification.within(w).visible())
        for block, given, mask in zip(
            cast("Sequence[Block]", self.blocks), tables, masks, strict=True
        ):
            blocks.append(block.stages(x, tables=given, attn_mask=mask, told=True))
            x = blocks[-1].output
        final_norm = None if self.final_norm is None else self.final_norm.stages(x)
        return EncoderStages(
            positions=placement.positions,
            token_tables=tuple(table for _, table in token_tables),
            encoded=encoded,
            embedding_norm=embedding_norm,
            blocks=tuple(blocks),
            final_norm=final_norm,
            output=(final_norm.scaled if final_norm else x).to(dtype),
        )

    def _placed(
        self,
        x: Tensor,
        positions: Tensor | Coordinates | None,
        padding_mask: Tensor | None,
        document_ids: Tensor | None,
        cache: KeyValueCache | None,
    ) -> Placement:
        self._check_width(x)
        return placed(
            x,
            positions,
            positional=self.first,
            is_causal=self.is_causal,
            padding_mask=padding_mask,
            document_ids=document_ids,
            cache=cache,
        )

    def _placed_in_shards(
        self,
        x: Tensor,
        positions: Tensor | Coordinates | None,
        shards: ShardedTokens,
        cache: KeyValueCache | None,
    ) -> Placement:
        self._check_width(x)
        if not hasattr(shards, "local"):
            raise TypeError(
                f"shards is a {type(shards).__name__}; tokens of a pass are cut by Shards. For "
                f"cut keys build KeyValueCache(shards=KeyShards(group))."
            )
        if cache is not None and cache.shards is not None:
            for scores in scores_of(self.layers):
                cache.shards.check(scores)
        return placed_in_shards(
            x, positions, shards, positional=self.first, is_causal=self.is_causal, cache=cache
        )

    def _check_layers(self) -> None:
        dim, heads, head_dim = self._sizes
        if self.depth:  # ranks of a group have some of the heads
            inside = cast(Block, self.blocks[0]).attention
            heads, head_dim = inside.heads, inside.head_dim
        for layer in dict.fromkeys((self.first, *self.layers)):
            layer.check_company()
            check_sizes(layer, dim, heads, head_dim)
        self._checked: tuple[nn.Module, ...] = tuple(self._held())

    def _check_width(self, x: Tensor) -> None:
        if len(self.blocks) != self.depth:
            raise ValueError(
                f"There are {len(self.blocks)} blocks, and the encoder was built for depth "
                f"{self.depth}: encodings and windows are those of each layer. Build an "
                f"Encoder(depth={len(self.blocks)}), and load the blocks' weights into its own."
            )
        if isinstance(self.positional, nn.ModuleList):
            check_later(self.layers)  # one may have been exchanged since
        held = self._held()
        if len(held) != len(self._checked) or any(map(is_not, held, self._checked)):
            self._check_layers()
        check_dense(x=x)
        if not x.is_floating_point():
            raise TypeError(
                f"x is {x.dtype}; this encoder takes floating tokens [batch, seq, {self.dim}]. "
                f"Look token ids up in a TokenEmbedding first."
            )
        if x.ndim != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; this encoder takes [batch, seq, {self.dim}]."
            )

    def _token_tables(self, x: Tensor, placement: Placement) -> TokenTables:
        dtype = working_dtype(x.dtype)
        return tuple(
            (
                encoding,
                self.tables.rows(encoding, placement.positions, dtype=dtype, below=placement.below),
            )
            for encoding in cast("Sequence[TokenEncoding]", self.first.tokens)
        )

    def _encoded(self, x: Tensor, tables: TokenTables, padding_mask: Tensor | None) -> Tensor:
        if padding_mask is not None:
            # Hidden keys have weight 0, but 0 times an infinity left in padding would be NaN.
            x = x.where(padding_mask.unsqueeze(-1), 0.0)
        for place, (encoding, table) in enumerate(tables):
            if place and padding_mask is not None and not encoding.is_pointwise:
                x = x.where(padding_mask.unsqueeze(-1), 0.0)  # those before wrote into padding
            x = encoding.encode(x, table)
        return x

    def _attention_tables(self, x: Tensor, placement: Placement) -> list[AttentionTables]:
        """Every table that attention needs in each block, those of scores queries × keys."""
        specification = placement.specification
        q, k = specification.queries, specification.keys
        build, dtype = self._bias_table(placement), working_dtype(x.dtype)

        def with_bias(scores: ScoreEncodings) -> tuple[tuple[ScoreEncoding, Tensor], ...]:
            check_scores_know_documents(scores, specification)
            return tuple((encoding, build(encoding, q, k, dtype=dtype)) for encoding in scores)

        biases = once_each(scores_of(self.layers), with_bias)
        rotations = self._rotations(x, placement)
        return [
            AttentionTables(rotation, bias, positions=rows, readers=readers(scores))
            for (rotation, rows), bias, scores in zip(
                rotations, biases, scores_of(self.layers), strict=True
            )
        ]

    def _chosen_tables(
        self, x: Tensor, placement: Placement, spread: str | None = None
    ) -> list[AttentionTables]:
        """The same for the cheapest backend; biases and masks meet once here, not in each block."""
        layers = list(zip(scores_of(self.layers), self.windows, strict=True))
        backends = once_each(layers, partial(self._chosen, x=x, placement=placement, spread=spread))
        rotations = self._rotations(x, placement)
        return [
            AttentionTables(rotation, backend=backend, positions=rows, readers=readers(scores))
            for (rotation, rows), backend, (scores, _) in zip(
                rotations, backends, layers, strict=True
            )
        ]

    def _chosen(
        self,
        layer: tuple[ScoreEncodings, int | None],
        *,
        x: Tensor,
        placement: Placement,
        spread: str | None,
    ) -> Backend:
        scores, window = layer
        specification, table = placement.specification.within(window), self._bias_table(placement)
        # Of the layers as they are now, each in its own mode: a backend that drops nothing must not
        # be taken for them.
        layers = [cast(Block, block).attention for block in self.blocks]
        dropout_p = max(each.dropout if each.training else 0.0 for each in layers)
        inside = cast(Block, self.blocks[0]).attention
        if placement.spreading is not None:
            sizes = Sizes(inside.heads, inside.kv_heads, inside.head_dim, inside.head_dim, x.dtype)
            return placement.spreading.considered(
                scores, specification, sizes, spread=spread, dropout_p=dropout_p, table=table
            )[0]
        if spread is not None:
            raise ValueError(f"spread is {spread!r} and there are no shards. Pass shards=Shards().")
        return chosen(
            scores,
            specification,
            heads=inside.heads,
            dtype=x.dtype,
            dropout_p=dropout_p,
            table=table,
        )

    def _rotations(self, x: Tensor, placement: Placement) -> list[Rotations]:
        given = {"dtype": working_dtype(x.dtype), "below": placement.below}
        rotations = partial(self.tables.rotations, positions=placement.positions, **given)
        return once_each(queries_keys_of(self.layers), rotations)

    def _bias_table(self, placement: Placement) -> TableBuilder:
        return partial(self.tables.biases, below=placement.below)


def _check_kind(cache: object) -> None:
    if cache is not None and not isinstance(cache, KeyValueCache):
        raise TypeError(
            f"cache is a {type(cache).__name__}; an encoder takes a KeyValueCache. Build "
            f"KeyValueCache() once, and give it to every step."
        )


def _check_depth(cache: KeyValueCache | None, depth: int) -> None:
    if cache is None:
        return
    if cache.is_empty and len(cache.layers) > depth:
        del cache.layers[depth:]  # of a deeper encoder, whose keys are forgotten
    if cache.is_empty or len(cache.layers) in (0, depth):
        return
    raise ValueError(
        f"The cache holds keys of {len(cache.layers)} layers, and this encoder has {depth}. Give "
        f"each encoder a cache of its own."
    )


def _check_kept(cache: KeyValueCache | None, depth: int) -> None:
    """Refuse a cache that was told of tokens whose keys it does not hold, or the other way."""
    if cache is None or cache.is_empty or (cache.size is not None and cache.layers):
        return
    own = cache.length if cache.held is None else len(cache.held)
    for index, kept in enumerate([layer.length for layer in cache.layers] or [0] * depth):
        if kept != own:
            raise ValueError(
                f"The cache holds keys of {kept} tokens in layer {index}, and positions of {own}. "
                f"An encoder records both itself: leave extend() to it, and crop the whole cache."
            )


def _check_alone(padding_mask: Tensor | None, document_ids: Tensor | None) -> None:
    """Refuse what would describe one device's tokens alone."""
    told = {"padding_mask": padding_mask, "document_ids": document_ids}
    for name, value in told.items():
        if value is not None:
            raise ValueError(f"{name} and shards were given. Tell Shards({name}=...).")
