"""The stages of ``posenc walk``: what is computed of a sentence, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from posenc.encodings.base import TokenEncoding
from posenc.encodings.bias import ScoreBias
from posenc.transformer import AttentionStages, Block, Encoder, EncoderStages, NormStages

ROUNDING = 1e-9
"""What differs by less is the same number, summed in another order."""

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Stage:
    """One stage: values are ``[seq, width]`` or ``[heads, seq, width]``; columns may be tokens."""

    name: str
    about: str
    equation: str
    values: Tensor
    columns: tuple[str, ...] = ()
    number: int = 0


def stages(encoder: Encoder, embeddings: Tensor, tokens: list[str]) -> list[Stage]:
    """All stages of the first block, and the output, in the order in which they happen."""
    walked = _stages(encoder, encoder.stages(embeddings[None]), embeddings, tuple(tokens))
    return [replace(stage, number=number) for number, stage in enumerate(walked, start=3)]


def _stages(
    encoder: Encoder, found: EncoderStages, embeddings: Tensor, tokens: tuple[str, ...]
) -> Iterator[Stage]:
    block, feed_forward = found.blocks[0], found.blocks[0].feed_forward
    pre = cast(Block, encoder.blocks[0]).norm == "pre"
    yield Stage("embeddings", "Each id picks its row of a table.", "E = W[ids]", embeddings)
    x = "E"
    if found.token_tables:
        yield from _token_encodings(encoder, found, embeddings)
        x = "X"
    if pre:
        yield from _norm(block.attention_norm, x)
    yield from _attention(block.attention, tokens, encoder, "N" if pre else x)
    about = "What came in is added."
    yield Stage("residual", about, f"Y = {x} + attention", block.attention_sum[0])
    yield from _norm(block.feed_forward_norm if pre else block.attention_norm, "Y")
    about = "A linear map of each token by itself."
    yield Stage("feed-forward: inner", about, "N W₁ + b₁", feed_forward.inner[0])
    about = "Negative numbers become 0."
    yield Stage("feed-forward: activated", about, "max(0, inner)", feed_forward.activated[0])
    about = "And back to the width of the model."
    yield Stage("feed-forward", about, "activated W₂ + b₂", feed_forward.output[0])
    about, equation = "Again what came in is added.", f"Z = {'Y' if pre else 'N'} + feed-forward"
    yield Stage("residual", about, equation, block.feed_forward_sum[0])
    if not pre:
        yield from _norm(block.feed_forward_norm, "Z")
    if found.final_norm is not None:
        yield from _norm(found.final_norm, "the output of the last block")
    yield Stage("output", "One vector a token.", "the encoder's result", found.output[0])


def _token_encodings(encoder: Encoder, found: EncoderStages, x: Tensor) -> Iterator[Stage]:
    """Each encoding of tokens in turn, and what they make of the embeddings together."""
    encodings, sums = cast("tuple[TokenEncoding, ...]", encoder.first.tokens), "E"
    for number, (encoding, table) in enumerate(zip(encodings, found.token_tables, strict=True), 1):
        symbol = f"PE{number}".translate(SUBSCRIPTS) if len(encodings) > 1 else "PE"
        encoded = encoding.encode(x[None], table)[0]
        about, values = "What positions alone say.", table
        if not encoding.is_pointwise:  # its table is the positions
            about, values = "What it makes of each token and those around it.", encoded - x
        yield Stage("encoding", about, symbol, values.expand(x.shape))
        factor = getattr(encoding, "factor", None)
        if not _near(encoded, (factor or 1.0) * x + values):
            sums = f"encode({sums}, {symbol})"
        elif factor is None:
            sums = f"{sums} + {symbol}"
        else:
            sums = f"{factor:g} · {f'({sums})' if '+' in sums else sums} + {symbol}"
        x = encoded
    about = "Embeddings with positions in them."
    yield Stage("sum", about, f"X = {sums}", found.encoded[0])


def _norm(norm: NormStages, of: str) -> Iterator[Stage]:
    about = f"Over the features of each token of {of}."
    yield Stage("layer norm: mean", about, "μ = Σ x_j / d", norm.mean[0])
    about = "How far the features lie apart."
    yield Stage("layer norm: variance", about, "σ² = Σ (x_j − μ)² / d", norm.variance[0])
    about = "Every token has mean 0 and, where σ² is well above ε, variance 1."
    equation = "(x − μ) / √(σ² + ε)"
    yield Stage("layer norm: normalized", about, equation, norm.normalized[0])
    about = "A learned scale and shift; 1 and 0 before training."
    yield Stage("layer norm: scaled", about, "N = γ · normalized + β", norm.scaled[0])


def _attention(
    found: AttentionStages, tokens: tuple[str, ...], encoder: Encoder, of: str
) -> Iterator[Stage]:
    for name, values, role in (
        ("queries Q", found.queries, "what it looks for"),
        ("keys K", found.keys, "what it is found by"),
        ("values V", found.values, "what it hands over"),
    ):
        about = f"A linear map of each token: {role}; split among the heads."
        yield Stage(name, about, f"{name[-1]} = {of} W + b, split by head", values[0])
    pairs = (found.encoded_queries, found.queries), (found.encoded_keys, found.keys)
    q, k = "Q", "K"
    if not all(torch.equal(encoded, plain) for encoded, plain in pairs):
        q, k = "Q'", "K'"
        about, equation = "Each query with its own position.", "Q' = encode(Q, position)"
        yield Stage("queries with positions", about, equation, found.encoded_queries[0])
        about, equation = "Each key with its own.", "K' = encode(K, position)"
        yield Stage("keys with positions", about, equation, found.encoded_keys[0])
    about = "How well each query (row) meets each key (column), in each head."
    yield Stage("scaled scores", about, f"{q} {k}ᵀ / √depth", found.scores[0], tokens)
    encodings = encoder.first.scores
    if encodings or encoder.is_causal:
        about, equation = "", "scores"
        if encodings:
            added = all(isinstance(encoding, ScoreBias) for encoding in encodings)
            about = "A bias is added. " if added else "Positions change scores. "
            equation = "scores + bias" if added else "encode(scores)"
        if encoder.is_causal:
            about, equation = f"{about}Keys after their query are hidden.", f"{equation} + mask"
        name = "scores with positions" if encodings else "masked scores"
        yield Stage(name, about.strip(), equation, found.encoded_scores[0], tokens)
    about, equation = "Positive weights, 1 in each row.", "exp(score) / Σ exp(scores of the row)"
    yield Stage("softmax", about, equation, found.weights[0], tokens)
    groups = found.weights.shape[1] // found.values.shape[1]
    gathered = found.weights @ found.values.repeat_interleave(groups, 1)
    plain = _near(found.heads, gathered)
    equation = "softmax · V" if plain else "encode(softmax · V, positions)"
    yield Stage("heads", "Each token gathers values by its weights.", equation, found.heads[0])
    about = "The heads of a token stand side by side."
    yield Stage("heads joined", about, "[head 1 | head 2 | …]", found.joined[0])
    about = "A last linear map mixes what the heads found."
    yield Stage("attention", about, "joined W + b", found.output[0])


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() < ROUNDING)
