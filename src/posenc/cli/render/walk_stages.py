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
    block, forward = found.blocks[0], found.blocks[0].feed_forward
    pre, x = cast(Block, encoder.blocks[0]).norm == "pre", "E"
    yield Stage("embeddings", "Each id picks its row of a table.", "E = W[ids]", embeddings)
    if found.token_tables:
        yield from _token_encodings(encoder, found, embeddings)
        x = "X"
    if pre:
        yield from _norm(block.attention_norm, x)
    yield from _attention(block.attention, tokens, encoder, "N" if pre else x)
    added = "What came in is added."
    yield Stage("residual", added, f"Y = {x} + attention", block.attention_sum[0])
    yield from _norm(block.feed_forward_norm if pre else block.attention_norm, "Y")
    yield Stage("feed-forward: inner", "A linear map of each token.", "N W₁ + b₁", forward.inner[0])
    about, values = "Negative numbers become 0.", forward.activated[0]
    yield Stage("feed-forward: activated", about, "max(0, inner)", values)
    about, values = "And back to the width of the model.", forward.output[0]
    yield Stage("feed-forward", about, "activated W₂ + b₂", values)
    equation = f"Z = {'Y' if pre else 'N'} + feed-forward"
    yield Stage("residual", added, equation, block.feed_forward_sum[0])
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
    for part, about, equation in (
        ("mean", f"Over the features of each token of {of}.", "μ = Σ x_j / d"),
        ("variance", "How far the features lie apart.", "σ² = Σ (x_j − μ)² / d"),
        ("normalized", "Mean 0 and, where σ² is well above ε, variance 1.", "(x − μ) / √(σ² + ε)"),
        ("scaled", "A scale and shift, 1 and 0 at first.", "N = γ · normalized + β"),
    ):
        yield Stage(f"layer norm: {part}", about, equation, getattr(norm, part)[0])


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
    queries, keys, product = found.encoded_queries, found.encoded_keys, "Q Kᵀ"
    if not (torch.equal(queries, found.queries) and torch.equal(keys, found.keys)):
        for symbol, name, values in (("Q", "queries", queries), ("K", "keys", keys)):
            equation = f"{symbol}' = encode({symbol}, position)"
            yield Stage(f"{name} with positions", "By their own positions.", equation, values[0])
        product = "Q' K'ᵀ"
    about = "How well each query (row) meets each key (column), in each head."
    yield Stage("scaled scores", about, f"{product} / √depth", found.scores[0], tokens)
    name, about, equation = "masked scores", "", "scores"
    if encodings := encoder.first.scores:
        added = all(isinstance(encoding, ScoreBias) for encoding in encodings)
        about = "A bias is added. " if added else "Positions change scores. "
        name, equation = "scores with positions", "scores + bias" if added else "encode(scores)"
    if encoder.is_causal:
        about, equation = f"{about}Keys after their query are hidden.", f"{equation} + mask"
    if about:
        yield Stage(name, about.strip(), equation, found.encoded_scores[0], tokens)
    about, equation = "Positive weights, 1 in each row.", "exp(score) / Σ exp(scores of the row)"
    yield Stage("softmax", about, equation, found.weights[0], tokens)
    groups = found.weights.shape[1] // found.values.shape[1]
    plain = _near(found.heads, found.weights @ found.values.repeat_interleave(groups, 1))
    equation = "softmax · V" if plain else "encode(softmax · V, positions)"
    yield Stage("heads", "Each token gathers values by its weights.", equation, found.heads[0])
    about = "The heads of a token stand side by side."
    yield Stage("heads joined", about, "[head 1 | head 2 | …]", found.joined[0])
    about = "A last linear map mixes what the heads found."
    yield Stage("attention", about, "joined W + b", found.output[0])


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() < ROUNDING)
