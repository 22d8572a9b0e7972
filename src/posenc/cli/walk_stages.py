"""The stages of ``posenc walk``: what is shown of each, and the words beside it."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from posenc.transformer import AttentionStages, BlockStages, EncoderStages, NormStages


@dataclass(frozen=True)
class Stage:
    """One stage of the walk.

    Attributes:
        name: Its title.
        about: One sentence of explanation.
        equation: What is computed.
        values: The numbers: ``[seq, width]``, or ``[heads, seq, width]``.
        columns: Names of the columns, where they are tokens.
    """

    name: str
    about: str
    equation: str
    values: Tensor
    columns: tuple[str, ...] = ()


def stages(found: EncoderStages, embeddings: Tensor, tokens: list[str], norm: str) -> list[Stage]:
    """All stages of the first block, and the output, in the order in which they happen."""
    block = found.blocks[0]
    walked = [
        Stage(
            "embeddings",
            "Each id picks its row of a table; the same word, the same row.",
            "E = W[ids]",
            embeddings,
        ),
        Stage(
            "encoding",
            "What the positions alone say: the same for every sentence.",
            "PE",
            found.token_tables[0].expand(embeddings.shape),
        ),
        Stage(
            "sum",
            "The two are added; from here on a vector knows its place.",
            "X = E + PE",
            found.encoded[0],
        ),
    ]
    if norm == "pre":
        walked += _norm(block.attention_norm, "X")
    walked += _attention(block.attention, tokens)
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


def _attention(attention: AttentionStages, tokens: list[str]) -> Iterator[Stage]:
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
    columns = tuple(tokens)
    yield Stage(
        "scaled scores",
        "How well each query (row) meets each key (column), in each head.",
        "Q Kᵀ / √depth",
        attention.scores[0],
        columns,
    )
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
