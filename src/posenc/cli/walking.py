"""The work of ``posenc walk``: the real modules run, and every number on the way is shown."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from torch import Tensor

from posenc import Positional, Sinusoidal
from posenc.cli import vocabulary
from posenc.cli.errors import UserError
from posenc.cli.terminal import console, grid, number, shortened
from posenc.cli.text import open_text
from posenc.cli.walk import Walk
from posenc.cli.walk_stages import Stage, stages
from posenc.inspection.order import OrderEffect, order_effect
from posenc.transformer import Encoder, TokenEmbedding

MOST_TOKENS = 64
WARNING = "Embeddings and weights are seeded random numbers: mechanism only."
ORDERS = ("lion kills tiger", "tiger kills lion")
SWAPPED = (2, 1, 0)


@dataclass(frozen=True)
class Model:
    """The modules that the sentence walks through.

    Attributes:
        words: The vocabulary, token by id.
        embedding: Ids to vectors.
        encoder: With sinusoidal positions.
        without: The same weights without any.
    """

    words: dict[str, int]
    embedding: TokenEmbedding
    encoder: Encoder
    without: Encoder

    def embedded(self, tokens: Sequence[str]) -> Tensor:
        """The vectors ``[seq, dim]`` of some tokens."""
        return self.embedding(torch.tensor([self.words[token] for token in tokens]))


@torch.no_grad()
def walk(arguments: Walk) -> None:
    """Runs the command."""
    tokens, dropped, model = _prepared(arguments)
    embeddings = model.embedded(tokens)
    found = model.encoder.stages(embeddings[None])
    walked = stages(found, embeddings, tokens, arguments.norm)
    lion = model.embedded(ORDERS[0].split())
    effects = {
        "without an encoding": order_effect(model.without, lion, SWAPPED),
        "with the encoding": order_effect(model.encoder, lion, SWAPPED),
    }
    if arguments.format == "json":
        _json(arguments, tokens, model, walked, effects)
    else:
        _text(arguments, tokens, dropped, model, walked, effects)


def _prepared(arguments: Walk) -> tuple[list[str], int, Model]:
    for name in ("heads", "depth"):
        if getattr(arguments, name) < 1:
            raise UserError(f"--{name} is {getattr(arguments, name)}; it must be at least 1")
    with open_text(arguments.text, None) as text:
        tokenizer = vocabulary.trained(text, MOST_TOKENS, False)
        tokens = [token for piece in text.pieces() for token in tokenizer.encode(piece.text).tokens]
    if not tokens:
        raise UserError("no text: give a sentence of at least one word")
    kept = tokens[:MOST_TOKENS]
    words = vocabulary.words_by_id(tokenizer)
    for word in ORDERS[0].split():
        words.setdefault(word, len(words))
    return kept, len(tokens) - len(kept), _model(arguments, words)


def _model(arguments: Walk, words: dict[str, int]) -> Model:
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(arguments.seed)
        embedding = TokenEmbedding(len(words), arguments.dim)
        encoder, without = (
            Encoder(
                arguments.dim,
                arguments.heads,
                arguments.depth,
                positional=positional,
                inner=arguments.inner,
                norm=arguments.norm,
            )
            for positional in (Positional(encoding), Positional())
        )
    without.load_state_dict(encoder.state_dict())
    # In float64, what should be equal is seen to be.
    return Model(words, embedding.double(), encoder.double().eval(), without.double().eval())


def _text(
    arguments: Walk,
    tokens: list[str],
    dropped: int,
    model: Model,
    walked: list[Stage],
    effects: dict[str, OrderEffect],
) -> None:
    screen = console()
    screen.print(WARNING, style="italic")
    if dropped:
        screen.print(f"Only the first {MOST_TOKENS} tokens are shown; {dropped} more were given.")
    _heading(screen, 1, "tokens", f"[{len(tokens)}]", "The sentence is cut into words and marks.")
    screen.print("  " + "  ".join(tokens))
    _heading(screen, 2, "ids", f"[{len(tokens)}]", "Each word has a number in the vocabulary.")
    screen.print("  " + "  ".join(str(model.words[token]) for token in tokens))
    for count, stage in enumerate(walked, start=3):
        shape = f"[{', '.join(map(str, stage.values.shape))}]"
        _heading(screen, count, stage.name, shape, stage.about, stage.equation)
        _numbers(screen, stage, tokens)
    _order(screen, effects)


def _heading(
    screen: Console, count: int, name: str, shape: str, about: str, equation: str = ""
) -> None:
    screen.print()
    screen.print(f"{count}. {name}  {shape}", style="bold")
    screen.print(f"   {about}" + (f"  {equation}" if equation else ""))


def _numbers(screen: Console, stage: Stage, tokens: list[str]) -> None:
    values = stage.values
    if values.ndim == 2:
        values = values[None]
    for head, matrix in enumerate(values, start=1):
        if len(values) > 1:
            screen.print(f"   head {head}")
        most = max(3, (min(screen.width, 160) - 16) // 10)
        names = stage.columns or tuple(str(column) for column in range(matrix.shape[1]))
        headers = ["", *shortened(names, most)]
        rows = [
            [token, *shortened([number(value) for value in row], most)]
            for token, row in zip(tokens, matrix.tolist(), strict=True)
        ]
        screen.print(grid(headers, rows, screen, left=(0,)))


def _order(screen: Console, effects: dict[str, OrderEffect]) -> None:
    first, second = ORDERS
    words = first.split()
    screen.print()
    screen.print(f"Does order matter?  {first!r} and {second!r}", style="bold")
    screen.print(
        "   The same words in two orders; each row is what one word attends to, in head 1."
    )
    for name, effect in effects.items():
        screen.print(f"   {name}")
        rows = [
            [word, *(number(v) for v in row), *(number(v) for v in other)]
            for word, row, other in zip(
                words, effect.weights[0].tolist(), effect.reordered[0].tolist(), strict=True
            )
        ]
        headers = ["", *(f"{w} (1)" for w in words), *(f"{w} (2)" for w in words)]
        screen.print(grid(headers, rows, screen, left=(0,)))
        screen.print(f"   {_verdict(effect)}")


def _verdict(effect: OrderEffect) -> str:
    attention, output = effect.attention_difference, effect.output_difference
    said = f"Attention differs by {attention:.1e} at most, the output of a word by {output:.1e}: "
    if attention < ROUNDING and output < ROUNDING:
        return said + "rounding. Both sentences look the same; attention sees a set."
    return said + "the two sentences are told apart."


ROUNDING = 1e-9


def _json(
    arguments: Walk,
    tokens: list[str],
    model: Model,
    walked: list[Stage],
    effects: dict[str, OrderEffect],
) -> None:
    names = ("text", "dim", "heads", "depth", "norm", "base", "convention", "seed")
    about = {
        "note": WARNING,
        **{name: getattr(arguments, name) for name in names},
        "tokens": tokens,
        "ids": [model.words[token] for token in tokens],
        "stages": [
            {
                "name": stage.name,
                "about": stage.about,
                "equation": stage.equation,
                "shape": list(stage.values.shape),
                "values": stage.values.tolist(),
            }
            for stage in walked
        ],
        "order": {
            "sentences": ORDERS,
            **{
                name: {
                    "attention": effect.weights.tolist(),
                    "attention_reordered": effect.reordered.tolist(),
                    "attention_difference": effect.attention_difference,
                    "output_difference": effect.output_difference,
                }
                for name, effect in effects.items()
            },
        },
    }
    json.dump(about, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")
