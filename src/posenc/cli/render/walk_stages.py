"""The stages of ``posenc walk``: what is shown of each, and the words beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor

from posenc.encodings.base import ScoreBias, TokenEncoding
from posenc.transformer import (
    AttentionStages,
    Block,
    BlockStages,
    Encoder,
    EncoderStages,
    NormStages,
)

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Stage:
    """One stage of the walk.

    Attributes:
        name: Its title.
        about: One sentence of explanation.
        equation: What is computed.
        values: The numbers: ``[seq, width]``, or ``[heads, seq, width]``.
        columns: Names of the columns, where they are tokens.
        number: Its place in the walk; tokens are 1 and ids 2.
    """

    name: str
    about: str
    equation: str
    values: Tensor
    columns: tuple[str, ...] = ()
    number: int = 0


def stages(encoder: Encoder, embeddings: Tensor, tokens: list[str]) -> list[Stage]:
    """All stages of the first block, and the output, numbered in the order in which they happen."""
    found = encoder.stages(embeddings[None])
    walked = _stages(encoder, found, embeddings, tokens)
    return [replace(stage, number=number) for number, stage in enumerate(walked, start=3)]


def _stages(
    encoder: Encoder, found: EncoderStages, embeddings: Tensor, tokens: list[str]
) -> list[Stage]:
    norm = cast(Block, encoder.blocks[0]).norm
    block = found.blocks[0]
    walked = [
        Stage(
            "embeddings",
            "Each id picks its row of a table; the same word, the same row.",
            "E = W[ids]",
            embeddings,
        ),
    ]
    if found.token_tables:
        walked += _token_encoding(encoder, found, embeddings)
    if norm == "pre":
        walked += _norm(block.attention_norm, "X")
    walked += _attention(block.attention, tokens, encoder)
    walked.append(
        Stage(
            "residual",
            "What came in is added, so that nothing is lost on the way.",
            "X + attention",
            block.attention_sum[0],
        )
    )
    walked += _norm(block.attention_norm if norm == "post" else block.feed_forward_norm, "the sum")
    walked += _feed_forward(block)
    if norm == "post":
        walked += _norm(block.feed_forward_norm, "the sum")
    if found.final_norm is not None:
        walked += _norm(found.final_norm, "the output of the last block")
    walked.append(
        Stage(
            "output",
            "One vector a token: it knows its neighbors and its place.",
            "the encoder's result",
            found.output[0],
        )
    )
    return walked


def _token_encoding(encoder: Encoder, found: EncoderStages, embeddings: Tensor) -> Iterator[Stage]:
    """Each encoding of tokens in turn, and what they make of the embeddings together."""
    encodings = cast("Sequence[TokenEncoding]", encoder.first.tokens)
    x, sums, scaled = embeddings, "E", False
    for number, (encoding, table) in enumerate(zip(encodings, found.token_tables, strict=True), 1):
        symbol = f"PE{number}".translate(SUBSCRIPTS) if len(encodings) > 1 else "PE"
        about, values = "What the positions alone say: the same for every sentence.", table
        encoded = encoding.encode(x[None], table)[0]
        if not encoding.is_pointwise:  # its table is the positions
            about, values = "What it makes of each token and those around it.", encoded - x
        yield Stage("encoding", about, symbol, values.expand(embeddings.shape))
        x, factor = encoded, getattr(encoding, "factor", None)
        if factor is not None:
            sums = f"{factor:g} · ({sums})" if "+" in sums else f"{factor:g} · {sums}"
            scaled = True
        sums += f" + {symbol}"
    first = "The embeddings are scaled; then the two" if scaled else "The two"
    yield Stage(
        "sum",
        f"{first} are added; from here on a vector knows its place.",
        f"X = {sums}",
        found.encoded[0],
    )


def _norm(norm: NormStages, of: str) -> Iterator[Stage]:
    yield Stage(
        "layer norm: mean",
        f"Over the features of each token of {of}.",
        "μ = Σ x_j / d",
        norm.mean[0],
    )
    yield Stage(
        "layer norm: variance",
        "How far the features lie apart.",
        "σ² = Σ (x_j − μ)² / d",
        norm.variance[0],
    )
    yield Stage(
        "layer norm: normalized",
        "Every token now has mean 0 and variance 1.",
        "(x − μ) / √(σ² + ε)",
        norm.normalized[0],
    )
    yield Stage(
        "layer norm: scaled",
        "A learned scale and shift; 1 and 0 before training.",
        "γ · normalized + β",
        norm.scaled[0],
    )


def _attention(attention: AttentionStages, tokens: list[str], encoder: Encoder) -> Iterator[Stage]:
    for name, values, role in (
        ("queries Q", attention.queries, "what a token looks for"),
        ("keys K", attention.keys, "what a token offers to be found by"),
        ("values V", attention.values, "what a token hands over"),
    ):
        yield Stage(
            name,
            f"A linear map of each token: {role}; split among the heads.",
            f"{name[-1]} = X W + b, split by head",
            values[0],
        )
    if not _same(attention.encoded_queries, attention.queries) or not _same(
        attention.encoded_keys, attention.keys
    ):
        yield Stage(
            "queries with positions",
            "Each query is changed by its own position; a rotary encoding turns its pairs.",
            "Q' = encode(Q, position)",
            attention.encoded_queries[0],
        )
        yield Stage(
            "keys with positions",
            "Each key by its own: their products know the distance alone.",
            "K' = encode(K, position)",
            attention.encoded_keys[0],
        )
    columns = tuple(tokens)
    yield Stage(
        "scaled scores",
        "How well each query (row) meets each key (column), in each head.",
        "Q Kᵀ / √depth",
        attention.scores[0],
        columns,
    )
    yield from _encoded_scores(attention, columns, encoder)
    yield Stage(
        "softmax",
        "Scores become weights: positive, and 1 in each row.",
        "exp(score) / Σ exp(scores of the row)",
        attention.weights[0],
        columns,
    )
    yield Stage(
        "heads", "Each token gathers the values, by its weights.", "softmax · V", attention.heads[0]
    )
    yield Stage(
        "heads joined",
        "The heads of a token stand side by side again.",
        "[head 1 | head 2 | …]",
        attention.joined[0],
    )
    yield Stage(
        "attention",
        "A last linear map mixes what the heads found.",
        "joined W + b",
        attention.output[0],
    )


def _encoded_scores(
    attention: AttentionStages, columns: tuple[str, ...], encoder: Encoder
) -> Iterator[Stage]:
    """Scores after the encodings of scores and the causal mask, where there are any."""
    encodings = list(encoder.first.scores)
    if not encodings and not encoder.is_causal:
        return
    added = all(isinstance(encoding, ScoreBias) for encoding in encodings)
    about, equation = [], "scores"
    if encodings:
        about.append("What distance says is added." if added else "Positions change each score.")
        equation = "scores + bias" if added else "encode(scores)"
    if encoder.is_causal:
        about.append("Keys after their query are hidden: -inf.")
        equation += " + mask"
    name = "scores with positions" if encodings else "masked scores"
    yield Stage(name, " ".join(about), equation, attention.encoded_scores[0], columns)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def _feed_forward(block: BlockStages) -> Iterator[Stage]:
    feed_forward = block.feed_forward
    yield Stage(
        "feed-forward: inner",
        "Each token by itself is mapped to a wider vector.",
        "x W₁ + b₁",
        feed_forward.inner[0],
    )
    yield Stage(
        "feed-forward: activated",
        "Negative numbers become 0.",
        "max(0, inner)",
        feed_forward.activated[0],
    )
    yield Stage(
        "feed-forward",
        "And back to the width of the model.",
        "activated W₂ + b₂",
        feed_forward.output[0],
    )
    yield Stage(
        "residual", "Again what came in is added.", "x + feed-forward", block.feed_forward_sum[0]
    )
