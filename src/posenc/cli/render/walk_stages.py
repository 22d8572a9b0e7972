"""The stages of ``posenc walk``: what is shown of each, and the words beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding, TokenEncoding
from posenc.encodings.bias import ScoreBias
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.transformer import (
    AttentionStages,
    Block,
    BlockStages,
    Encoder,
    EncoderStages,
    NormStages,
)

# What differs by less is the same number, summed in another order.
ROUNDING = 1e-9

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


def stages(encoder: Encoder, embeddings: Tensor, tokens: list[str], *, placed: bool) -> list[Stage]:
    """All stages of the first block, and the output, numbered in the order in which they happen.

    Args:
        encoder: The modules.
        embeddings: ``[seq, dim]``.
        tokens: The words.
        placed: Whether the output tells by the encodings where a token stands.
    """
    found = encoder.stages(embeddings[None])
    walked = _stages(encoder, found, embeddings, tokens, placed)
    return [replace(stage, number=number) for number, stage in enumerate(walked, start=3)]


def _stages(
    encoder: Encoder, found: EncoderStages, embeddings: Tensor, tokens: list[str], placed: bool
) -> list[Stage]:
    norm = cast(Block, encoder.blocks[0]).norm
    block = found.blocks[0]
    x = "X" if found.token_tables else "E"
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
        walked += _norm(block.attention_norm, x, "N")
    walked += _attention(block.attention, tokens, encoder, "N" if norm == "pre" else x)
    walked.append(
        Stage(
            "residual",
            "What came in is added, so that nothing is lost on the way.",
            f"Y = {x} + attention",
            block.attention_sum[0],
        )
    )
    walked += _norm(block.attention_norm if norm == "post" else block.feed_forward_norm, "Y", "N")
    walked += _feed_forward(block, "N" if norm == "post" else "Y")
    if norm == "post":
        walked += _norm(block.feed_forward_norm, "Z", "N")
    if found.final_norm is not None:
        walked += _norm(found.final_norm, "the output of the last block", "N")
    walked.append(
        Stage(
            "output",
            f"One vector a token: it knows its neighbors{' and its place' if placed else ''}.",
            "the encoder's result",
            found.output[0],
        )
    )
    return walked


def _token_encoding(encoder: Encoder, found: EncoderStages, embeddings: Tensor) -> Iterator[Stage]:
    """Each encoding of tokens in turn, and what they make of the embeddings together."""
    encodings = cast("Sequence[TokenEncoding]", encoder.first.tokens)
    x, sums, scaled, added, placed = embeddings, "E", False, True, False
    for number, (encoding, table) in enumerate(zip(encodings, found.token_tables, strict=True), 1):
        symbol = f"PE{number}".translate(SUBSCRIPTS) if len(encodings) > 1 else "PE"
        about, values = "What the positions alone say: the same for every sentence.", table
        encoded = encoding.encode(x[None], table)[0]
        if not encoding.is_pointwise:  # its table is the positions
            about, values = "What it makes of each token and those around it.", encoded - x
        yield Stage("encoding", about, symbol, values.expand(embeddings.shape))
        placed |= _tells_places(values)
        factor = getattr(encoding, "factor", None)
        if not _near(encoded, (factor or 1.0) * x + values):
            sums, added = f"encode({sums}, {symbol})", False
        else:
            if factor is not None:
                sums = f"{factor:g} · ({sums})" if "+" in sums else f"{factor:g} · {sums}"
                scaled = True
            sums += f" + {symbol}"
        x = encoded
    what = "the two are added" if len(encodings) == 1 else "all are added"
    what = what if added else "positions are put into them"
    about = f"The embeddings are scaled; then {what}" if scaled else what[0].upper() + what[1:]
    knows = "from here on a vector knows its place"
    if not placed:
        knows = "every vector gets the same, and none knows its place by it"
    yield Stage(
        "sum",
        f"{about}; {knows}.",
        f"X = {sums}",
        found.encoded[0],
    )


def _tells_places(values: Tensor) -> bool:
    """Whether rows differ, or there is one alone that is something."""
    return bool((values != values[:1]).any() if len(values) > 1 else values.any())


def _norm(norm: NormStages, of: str, symbol: str) -> Iterator[Stage]:
    found = norm.normalized[0].var(-1, correction=0)
    about = "Every token now has mean 0 and variance 1"
    if (found - 1).abs().max() > 0.01:  # features that are few or equal hardly vary
        about += ", or less where σ² is hardly above ε"
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
        f"{about}.",
        "(x − μ) / √(σ² + ε)",
        norm.normalized[0],
    )
    yield Stage(
        "layer norm: scaled",
        "A learned scale and shift; 1 and 0 before training.",
        f"{symbol} = γ · normalized + β",
        norm.scaled[0],
    )


def _attention(
    attention: AttentionStages, tokens: list[str], encoder: Encoder, of: str
) -> Iterator[Stage]:
    for name, values, role in (
        ("queries Q", attention.queries, "what a token looks for"),
        ("keys K", attention.keys, "what a token offers to be found by"),
        ("values V", attention.values, "what a token hands over"),
    ):
        yield Stage(
            name,
            f"A linear map of each token: {role}; split among the heads.",
            f"{name[-1]} = {of} W + b, split by head",
            values[0],
        )
    encodings = cast("Sequence[QueryKeyEncoding]", encoder.first.queries_keys)
    yield from _encoded_queries_and_keys(attention, encodings)
    symbols = ("Q", "K") if _unchanged(attention) else ("Q'", "K'")
    columns = tuple(tokens)
    yield Stage(
        "scaled scores",
        "How well each query (row) meets each key (column), in each head.",
        f"{symbols[0]} {symbols[1]}ᵀ / √depth",
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
    about, equation = "Each token gathers the values, by its weights.", "softmax · V"
    if not _gathers(attention):
        about += " The encoding has a part in it: it changes values, or what is gathered."
        equation = "encode(softmax · V, positions)"
    yield Stage("heads", about, equation, attention.heads[0])
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


def _encoded_queries_and_keys(
    attention: AttentionStages, encodings: Sequence[QueryKeyEncoding]
) -> Iterator[Stage]:
    """Queries and keys with positions in them, where an encoding changes either."""
    if _unchanged(attention):
        return
    turned = any(isinstance(encoding, Rotary) for encoding in encodings)
    about = "Each query is changed by its own position"
    yield Stage(
        "queries with positions",
        f"{about}; a rotary encoding turns its pairs." if turned else f"{about}.",
        "Q' = encode(Q, position)",
        attention.encoded_queries[0],
    )
    about = "Each key by its own"
    if _same(attention.encoded_keys, attention.keys):
        about = "Keys stay what they were"
    elif all(encoding.is_relative for encoding in encodings):
        about += ": their products know the distance alone"
    yield Stage(
        "keys with positions",
        f"{about}.",
        "K' = encode(K, position)",
        attention.encoded_keys[0],
    )


def _unchanged(attention: AttentionStages) -> bool:
    """Whether queries and keys have no positions in them."""
    queries = _same(attention.encoded_queries, attention.queries)
    return queries and _same(attention.encoded_keys, attention.keys)


def _gathers(attention: AttentionStages) -> bool:
    """Whether the heads are the weights times the values, and nothing else."""
    groups = attention.weights.shape[1] // attention.values.shape[1]
    values = attention.values.repeat_interleave(groups, 1)
    return _near(attention.heads, attention.weights @ values)


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
        changed = _changed(attention)
        if added:
            relative = all(encoding.is_relative for encoding in encodings)
            what = f"What {'distance says' if relative else 'the two positions say'} is added"
            about.append(f"{what}." if changed.any() else f"{what}: 0 everywhere here.")
        else:
            which = "each score" if changed.all() else "some scores"
            about.append(f"Positions change {which if changed.any() else 'no score here'}.")
        equation = "scores + bias" if added else "encode(scores)"
    if encoder.is_causal:
        about.append("Keys after their query are hidden: -inf.")
        equation += " + mask"
    name = "scores with positions" if encodings else "masked scores"
    yield Stage(name, " ".join(about), equation, attention.encoded_scores[0], columns)


def _changed(attention: AttentionStages) -> Tensor:
    """Which of the scores that are not hidden are others than before."""
    shown = attention.encoded_scores.isfinite()
    return attention.encoded_scores[shown] != attention.scores[shown]


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() < ROUNDING)


def _feed_forward(block: BlockStages, of: str) -> Iterator[Stage]:
    feed_forward = block.feed_forward
    wider = feed_forward.inner.shape[-1] > feed_forward.output.shape[-1]
    yield Stage(
        "feed-forward: inner",
        f"Each token by itself is mapped to a {'wider ' if wider else ''}vector.",
        "N W₁ + b₁",
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
        "residual",
        "Again what came in is added.",
        f"Z = {of} + feed-forward",
        block.feed_forward_sum[0],
    )
