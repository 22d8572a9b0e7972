"""The encoder: blocks in a row, told in all three places where their tokens stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_choice, check_whole
from posenc.backends.base import Asked, Dropout, ShardedTokens, Sizes
from posenc.backends.choice import BACKENDS, considered
from posenc.backends.masks import joined
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.positional import PLACES, Positional
from posenc.encodings.tokens.addition import checked_dropout
from posenc.positions import Coordinates
from posenc.transformer.block import Block, BlockStages, Norm
from posenc.transformer.cache import KeyValueCache
from posenc.transformer.feed_forward import Activation, dropped, drops
from posenc.transformer.layers import check_sizes, handed_down, held, windows_of
from posenc.transformer.normalization import LayerNorm, NormStages
from posenc.transformer.placement import Placement, placed, placed_in_shards
from posenc.transformer.tables import Tables

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
        backend: The name of a backend of attention to insist on; see ``posenc.attention``.

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
        backend: str | None = None,
    ):
        super().__init__()
        check_whole(0, depth=depth)
        check_whole(dim=dim, heads=heads)
        if backend is not None:
            check_choice(tuple(BACKENDS), backend=backend)
        self.backend = backend
        self.dim, self.heads, self.depth, self.is_causal = dim, heads, depth, is_causal
        self.windows = windows_of(window, depth)
        self.dropout = checked_dropout(dropout)
        self.attention_dropout = dropout if attention_dropout is None else attention_dropout
        self.positional: Positional | nn.ModuleList = held(positional, depth)
        self.blocks = nn.ModuleList(
            Block(
                dim, heads, inner, kv_heads=kv_heads, head_dim=head_dim, scale=scale, norm=norm,
                activation=activation, dropout=dropout, attention_dropout=attention_dropout,
                eps=eps, bias=bias,
            )
            for _ in range(depth)
        )  # fmt: skip
        final_norm = norm == "pre" if final_norm is None else final_norm
        self.embedding_norm = LayerNorm(dim, eps) if embedding_norm else None
        self.final_norm = LayerNorm(dim, eps) if final_norm else None
        self.embedding_dropout = nn.Dropout(dropout) if embedding_norm else None
        self.tables = Tables()
        for layer in dict.fromkeys((self.first, *self.layers)):
            check_sizes(layer, dim, heads, dim // heads if head_dim is None else head_dim)

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

    def forward(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Int64[Tensor, "..."] | Coordinates | None = None,
        *,
        padding_mask: Bool[Tensor, "batch seq"] | None = None,
        document_ids: Int64[Tensor, "batch seq"] | None = None,
        attn_mask: Tensor | None = None,
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
            attn_mask: For this call alone, besides order and windows: true where a token may see a
                key, or a number to add; it broadcasts to ``[batch, heads, seq, keys]``, where keys
                are those of the cache and then those of ``x`` (all places of a cache of fixed
                size). So branches of a tree of draft tokens, which stand at equal positions, are
                kept apart.
            cache: What earlier calls left; the tokens of ``x`` follow them, and are added to it.
                One built with ``shards=KeyShards(group)`` keeps a part of them on each device.
            shards: Where rows are cut among devices, as ``posenc.distributed.Shards`` has it; ``x``
                holds this device's tokens. Padding and documents are told to ``shards``.
            spread: How queries and keys of all devices meet; see ``posenc.attention``.
        """
        told: dict[str, Any] = {
            "layers": self.layers, "is_causal": self.is_causal, "cache": cache,
            "padding_mask": padding_mask, "document_ids": document_ids, "attn_mask": attn_mask,
        }  # fmt: skip
        drop = None
        if shards is None:
            placement = placed(x, positions, **told)
        else:
            placement = placed_in_shards(x, positions, shards, **told)
            padding_mask = shards.padding_mask
            drop = shards.hidden_dropout() if drops(self) else None
        given = x, self.layers, placement, padding_mask, cache, drop, spread
        if cache is None or torch.compiler.is_compiling():
            return self._run(*given)
        try:
            return self._run(*given)
        except BaseException:  # the tokens are recorded, and may have keys in some layers
            cache.crop(cache.length - x.shape[1] if shards is None else 0)
            raise

    def _run(
        self,
        x: Tensor,
        layers: Sequence[Positional],
        placement: Placement,
        padding_mask: Tensor | None,
        cache: KeyValueCache | None,
        drop: Dropout | None,
        spread: str | None,
    ) -> Tensor:
        dtype = x.dtype
        x = _encoded(x, self._token_tables(x, layers, placement), padding_mask)
        if self.embedding_norm is not None and self.embedding_dropout is not None:
            x = dropped(self.embedding_norm(x), self.embedding_dropout, drop)
        backend = partial(self._backend, x=x, placement=placement, spread=spread)
        tables = handed_down(layers, self.windows, self.tables, x, placement, backend)
        kept = None
        if cache is not None and self.depth:
            cache.layer(self.depth - 1)
            kept = cache.layers
        for index, (block, given) in enumerate(zip(self.blocks, tables, strict=True)):
            x = block(
                x,
                drop=None if drop is None else drop.of_block(index),
                tables=given,
                cache=None if kept is None else kept[index],
            )
        x = x if self.final_norm is None else self.final_norm(x)
        return x if x.dtype is dtype else x.to(dtype)

    def stages(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Int64[Tensor, "..."] | Coordinates | None = None,
        *,
        padding_mask: Bool[Tensor, "batch seq"] | None = None,
        document_ids: Int64[Tensor, "batch seq"] | None = None,
        attn_mask: Tensor | None = None,
    ) -> EncoderStages:
        """The same pass with every number between, for whole sequences; arguments as above."""
        placement = placed(
            x, positions, layers=self.layers, is_causal=self.is_causal, padding_mask=padding_mask,
            document_ids=document_ids, attn_mask=attn_mask,
        )  # fmt: skip
        dtype, token_tables = x.dtype, self._token_tables(x, self.layers, placement)
        x = encoded = _encoded(x, token_tables, padding_mask)
        embedding_norm = None
        if self.embedding_norm is not None and self.embedding_dropout is not None:
            embedding_norm = self.embedding_norm.stages(x)
            x = self.embedding_dropout(embedding_norm.scaled)
        tables, blocks = handed_down(self.layers, self.windows, self.tables, x, placement), []
        for block, given, window in zip(self.blocks, tables, self.windows, strict=True):
            mask = joined(
                placement.specification.attn_mask, placement.specification.within(window).visible()
            )
            made = cast(Block, block).stages(x, tables=given, attn_mask=mask, told=True)
            blocks.append(made)
            x = made.output
        final_norm = None if self.final_norm is None else self.final_norm.stages(x)
        tables_of = tuple(table for _, table in token_tables)
        output = (final_norm.scaled if final_norm else x).to(dtype)
        first = placement.positions, tables_of, encoded, embedding_norm
        return EncoderStages(*first, tuple(blocks), final_norm, output)

    def _repr_html_(self) -> str:
        from posenc.encodings.in_html import in_html

        shape = {"dim": self.dim, "heads": self.heads, "depth": self.depth}
        count = sum(each.numel() for each in self.parameters())
        places = {place: list(getattr(self.first, place)) for place in PLACES}
        return in_html({**shape, "parameters": f"{count:,}", **places})

    def _token_tables(
        self, x: Tensor, layers: Sequence[Positional], placement: Placement
    ) -> TokenTables:
        first = layers[0] if layers else self.first
        given, places = {"dtype": working_dtype(x.dtype), "below": placement.below}, []
        for each in cast("Sequence[TokenEncoding]", first.tokens):
            places.append((each, self.tables.rows(each, placement.positions, **given)))
        return tuple(places)

    def _backend(
        self, layer: Any, *, x: Tensor, placement: Placement, spread: str | None
    ) -> dict[str, Any]:
        """The cheapest backend, in which biases and masks meet once for all alike layers."""
        scores, window = layer
        table = partial(self.tables.biases, below=placement.below)
        specification = placement.specification.within(window)
        # Of the layers as they are now, each in its own mode: a backend that drops nothing must not
        # be taken for them.
        inside = [cast(Block, block).attention for block in self.blocks]
        first, dropout_p = inside[0], max([e.dropout if e.training else 0.0 for e in inside])
        if placement.spreading is not None:
            sizes = Sizes(first.heads, first.kv_heads, first.head_dim, first.head_dim, x.dtype)
            asked = Asked(scores, specification, sizes, spread, self.backend, dropout_p, table)
            return {"backend": placement.spreading.considered(asked)[0]}
        if spread is not None:
            raise ValueError(f"spread is {spread!r} and there are no shards. Pass shards=Shards().")
        backend, _ = considered(
            scores, specification, heads=first.heads, dtype=x.dtype, dropout_p=dropout_p,
            table=table, backend=self.backend,
        )  # fmt: skip
        return {"backend": backend}


def _encoded(x: Tensor, tables: TokenTables, padding_mask: Tensor | None) -> Tensor:
    """Tokens with their positions in them, and zeros in padding before anything reads it."""
    dtype = x.dtype
    if padding_mask is not None:
        # Hidden keys have weight 0, but 0 times an infinity left in padding would be NaN.
        x = x.where(padding_mask.unsqueeze(-1), 0.0)
    for place, (encoding, table) in enumerate(tables):
        if place and padding_mask is not None and not encoding.is_pointwise:
            x = x.where(padding_mask.unsqueeze(-1), 0.0)  # those before wrote into padding
        x = encoding.encode(x, table)
        x = x if x.dtype == dtype else x.to(dtype)
    return x
