"""``posenc walk``: what is computed of a sentence, stage by stage, and how it is printed."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc import Positional
from posenc.cli.encodings import NOT_TRAINED, chosen, learns, name_of
from posenc.cli.errors import UserError, close
from posenc.cli.printing import console, grid, number, options_of, print_json
from posenc.cli.tokens import text_from, trained
from posenc.encodings.bias import ScoreBias
from posenc.encodings.positional import PLACES
from posenc.inspection.attention import OrderEffect, order_effect
from posenc.inspection.words import word_vectors
from posenc.transformer import AttentionStages, Encoder, EncoderStages, NormStages

WARNING = "Embeddings and weights are seeded random numbers: mechanism only."
ORDERS = ("lion kills tiger", "tiger kills lion")
MOST_TOKENS = 64

ROUNDING = 1e-9
"""What differs by less is the same number, summed in another order."""

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Stage(NamedTuple):
    """One stage: values are ``[seq, width]`` or ``[heads, seq, width]``; columns may be tokens."""

    name: str
    about: str
    equation: str
    values: Tensor
    columns: list[str] | None = None

    def as_dict(self, place: int) -> dict[str, Any]:
        """What JSON says of it."""
        told = {"number": place, "name": self.name, "about": self.about, "equation": self.equation}
        return {**told, "shape": list(self.values.shape), "values": self.values.tolist()}


def walk(asked: Any) -> None:
    """Walks: the real modules run, in float64, where equal numbers are seen to be."""
    positional, text = _positional(asked), text_from(asked.text, None)
    tokenizer = trained(text, 1 << 16)
    words = tokenizer.encode(text().read()).tokens
    if not words:
        raise UserError("no text: give a sentence of at least one word")
    tokens = words[:MOST_TOKENS]
    shape = {name: getattr(asked, name) for name in ("dim", "heads", "depth", "inner", "norm")}
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(asked.seed)
        encoder = Encoder(**shape, positional=positional, is_causal=asked.causal).double().eval()
        without = Encoder(**shape, positional=Positional(), is_causal=asked.causal).double().eval()
        without.load_state_dict(encoder.state_dict(), strict=False)
        made = stages(encoder, word_vectors(tokens, asked.dim, seed=asked.seed), tokens)
        found = dict(enumerate(made, start=3))
        x = word_vectors(ORDERS[0].split(), asked.dim, seed=asked.seed)
        both = {"without an encoding": without, "with the encoding": encoder}
        effects = {name: order_effect(each, x, [2, 1, 0]) for name, each in both.items()}
    if asked.stage is not None:
        found = _picked(found, asked.stage)
    ids = [tokenizer.token_to_id(token) for token in tokens]
    if asked.format == "json":
        encodings = [name_of(each) for place in PLACES for each in getattr(positional, place)]
        about = {"note": WARNING, **options_of(asked), "encoding": encodings}
        told = [each.as_dict(place) for place, each in found.items()]
        order = _order_as_dict(effects)
        return print_json(about, tokens=tokens, ids=ids, stages=told, order=order)
    screen = console()
    for note in [WARNING, NOT_TRAINED] if learns(positional) else [WARNING]:
        screen.print(note, style="italic")
    if more := len(words) - len(tokens):
        screen.print(f"Only the first {len(tokens)} tokens are shown; {more} more were given.")
    if asked.stage is None:
        grid(["1. tokens", *tokens], [["2. ids", *map(str, ids)]])
    for place, stage in found.items():
        screen.print(f"\n{place}. {stage.name}  {list(stage.values.shape)}", style="bold")
        screen.print(f"   {stage.about}  {stage.equation}")
        names = stage.columns or list(map(str, range(stage.values.shape[-1])))
        heads = stage.values.tolist() if stage.values.ndim == 3 else [stage.values.tolist()]
        for head, matrix in enumerate(heads, start=1):
            rows = [[t, *map(number, row)] for t, row in zip(tokens, matrix, strict=True)]
            grid([f"head {head}" if len(heads) > 1 else "", *names], rows, left=[0])
    if asked.stage is None:
        _print_order(effects)


def _positional(asked: Any) -> Positional:
    made: Any = chosen(asked, own_width=False)
    if isinstance(made, Positional):
        return made
    place = next(name for name, kind in PLACES.items() if isinstance(made, kind))
    if place == "positions":
        raise UserError(f"{asked.encoding} encodes nothing by itself; give an encoding")
    return Positional(**{place: made})


def _picked(found: dict[int, Stage], asked: str) -> dict[int, Stage]:
    """The stages of --stage: that of its number, or all of its name, or of how this ends."""
    names = {place: (each.name, each.name.split(": ")[-1]) for place, each in found.items()}
    picked = {n: each for n, each in found.items() if asked in (str(n), *names[n])}
    if not picked:
        known = dict.fromkeys(name for both in names.values() for name in both)
        raise UserError(f"there is no stage {asked!r}{close(asked, known)}")
    return picked


def _print_order(effects: dict[str, OrderEffect]) -> None:
    screen, words = console(), ORDERS[0].split()
    screen.print(f"\nDoes order matter?  {ORDERS[0]!r} and {ORDERS[1]!r}", style="bold")
    screen.print("   Each row is what one word attends to, in head 1, in both sentences.")
    for name, effect in effects.items():
        pairs = zip(words, effect.weights[0].tolist(), effect.reordered[0].tolist(), strict=True)
        rows = [[word, *map(number, (*first, *second))] for word, first, second in pairs]
        screen.print(f"   {name}")
        grid(["", *(f"{w} ({n})" for n in (1, 2) for w in words)], rows, left=[0])
        apart = "are told apart" if effect.tells_apart(ROUNDING) else "look the same"
        screen.print(
            f"   Attention differs by {effect.attention_difference:.1e} at most, the output of a "
            f"word by {effect.output_difference:.1e}: the two sentences {apart}."
        )


def _order_as_dict(effects: dict[str, OrderEffect]) -> dict[str, Any]:
    told = {
        name: {
            "attention": effect.weights.tolist(),
            "attention_reordered": effect.reordered.tolist(),
            "attention_difference": effect.attention_difference,
            "output_difference": effect.output_difference,
        }
        for name, effect in effects.items()
    }
    return {"sentences": ORDERS, **told}


def stages(encoder: Encoder, embeddings: Tensor, tokens: list[str]) -> Iterator[Stage]:
    """All stages of the first block, and the output, in the order in which they happen."""
    found = encoder.stages(embeddings[None])
    block, forward = found.blocks[0], found.blocks[0].feed_forward
    pre, x = encoder.blocks[0].norm == "pre", "E"
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
    encodings: Any = encoder.first.tokens
    sums, one = "E", len(encodings) == 1
    for n, (encoding, table) in enumerate(zip(encodings, found.token_tables, strict=True), 1):
        symbol = "PE" if one else f"PE{n}".translate(SUBSCRIPTS)
        encoded = encoding.encode(x[None], table)[0]
        about, values = "What positions alone say.", table
        if not encoding.is_pointwise:  # its table is the positions
            about, values = "What it makes of each token and those around it.", encoded - x
        yield Stage("encoding", about, symbol, values.expand(x.shape))
        factor = getattr(encoding, "factor", None)
        if not _near(encoded, (factor or 1.0) * x + values):
            sums = f"encode({sums}, {symbol})"
        else:
            scaled = f"({sums})" if "+" in sums else sums
            sums = f"{sums if factor is None else f'{factor:g} · {scaled}'} + {symbol}"
        x = encoded
    yield Stage("sum", "Embeddings with positions in them.", f"X = {sums}", found.encoded[0])


def _norm(norm: NormStages, of: str) -> Iterator[Stage]:
    for part, about, equation in (
        ("mean", f"Over the features of each token of {of}.", "μ = Σ x_j / d"),
        ("variance", "How far the features lie apart.", "σ² = Σ (x_j − μ)² / d"),
        ("normalized", "Mean 0 and, where σ² is well above ε, variance 1.", "(x − μ) / √(σ² + ε)"),
        ("scaled", "A scale and shift, 1 and 0 at first.", "N = γ · normalized + β"),
    ):
        yield Stage(f"layer norm: {part}", about, equation, getattr(norm, part)[0])


def _attention(
    found: AttentionStages, tokens: list[str], encoder: Encoder, of: str
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
    name, about, equation = "masked scores", [], "scores"
    if encodings := encoder.first.scores:
        added = all(isinstance(encoding, ScoreBias) for encoding in encodings)
        about = ["A bias is added." if added else "Positions change scores."]
        name, equation = "scores with positions", "scores + bias" if added else "encode(scores)"
    if encoder.is_causal:
        about, equation = [*about, "Keys after their query are hidden."], f"{equation} + mask"
    if about:
        yield Stage(name, " ".join(about), equation, found.encoded_scores[0], tokens)
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
