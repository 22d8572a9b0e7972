"""``posenc walk``: a sentence on its way through an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from posenc.cli import options
from posenc.cli.errors import UserError, close
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from torch import Tensor

    from posenc import Positional
    from posenc.cli.render.walk_stages import Stage
    from posenc.transformer import Encoder, TokenEmbedding

MOST_TOKENS = 64


@dataclass(frozen=True)
class Walk:
    """The weights and embeddings are seeded random numbers: they show the mechanism, not a meaning.
    An encoding acts where it belongs: on the tokens, on queries and keys, or on the scores.
    """

    text: Annotated[str, by_place, option("The sentence.", metavar="TEXT")] = (
        "your cat is a lovely cat"
    )
    encoding: options.Expression = None
    dim: Annotated[int, option("Width of a token.", metavar="N")] = 16
    heads: Annotated[
        int,
        option("Number of attention heads; they share the width.", metavar="N"),
    ] = 2
    depth: Annotated[
        int,
        option("Number of blocks; the first is shown.", metavar="N"),
    ] = 1
    inner: Annotated[
        Optional[int],
        option(
            "Width inside the feed-forward layer.",
            metavar="N",
            shown="4 x dim",
        ),
    ] = None
    norm: Annotated[
        Literal["pre", "post"],
        option("Whether the norms come before attention and feed-forward, or after their sums."),
    ] = "pre"
    causal: Annotated[bool, option("Hide from each token those after it.")] = False
    stage: Annotated[
        Optional[str],
        option(
            "Show one stage alone, by its number, or all of a name, as softmax.", metavar="STAGE"
        ),
    ] = None
    base: options.Base = None
    convention: options.Convention = None
    seed: options.Seed = 0
    format: Annotated[Literal["text", "json"], option("How to print.")] = "text"

    def run(self) -> None:
        """Walks: the real modules run, and every number is kept."""
        import torch

        from posenc.cli.render import walk_report
        from posenc.cli.render.walk_report import NEIGHBORS, ORDERS, ROUNDING, SWAPPED, Walked
        from posenc.cli.render.walk_stages import stages
        from posenc.inspection.order import both_orders

        for name in ("heads", "depth"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} is {getattr(self, name)}; it must be at least 1")
        positional = self._positional()
        tokens, words = _tokens(self.text)
        kept = tokens[:MOST_TOKENS]
        with torch.no_grad():
            model = self._model(words, positional)
            x = model.embedded(kept)
            found = stages(model.encoder, x, kept, placed=model.places(x, ROUNDING))
            shown = found if self.stage is None else self._asked(found)
            lion = model.embedded(ORDERS[0].split())
            effects = {
                "without an encoding": both_orders(model.without, lion, SWAPPED),
                "with the encoding": both_orders(model.encoder, lion, SWAPPED),
            }
            changed = model.encoder(lion[None]) - model.without(lion[None])
            idle = bool(changed.abs().max() < ROUNDING)
            blind = not both_orders(model.encoder, lion, NEIGHBORS).tells_apart(ROUNDING)
        ids, dropped = [words[token] for token in kept], len(tokens) - len(kept)
        walked = Walked(kept, ids, dropped, shown, effects, positional, self.causal, idle, blind)
        if self.format == "json":
            walk_report.print_json(self, walked)
        else:
            walk_report.show(walked, whole=self.stage is None)

    def _positional(self) -> "Positional":
        """The encoding in its place."""
        from posenc import Positional
        from posenc.cli.encodings import chosen
        from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding

        asked: Any = _Asked(self.encoding, None, self.base, self.convention)
        encoding = chosen(asked, dim=self.dim, seed=self.seed)
        if isinstance(encoding, Positional):
            _check_draws_nothing(encoding)
            return encoding
        places = {
            TokenEncoding: "tokens",
            QueryKeyEncoding: "queries_keys",
            ScoreEncoding: "scores",
        }
        for kind, place in places.items():
            if isinstance(encoding, kind):
                return Positional(**{place: encoding})  # type: ignore[arg-type]
        raise UserError(
            f"{type(encoding).__name__} changes positions and encodes nothing by itself; give an "
            "encoding, as Rotary(8) or ALiBi(2)"
        )

    def _model(self, words: dict[str, int], positional: "Positional") -> "Model":
        import torch

        from posenc import Positional
        from posenc.transformer import Encoder, TokenEmbedding

        def encoder(positional: Positional) -> Encoder:
            return Encoder(
                self.dim,
                self.heads,
                self.depth,
                positional=positional,
                inner=self.inner,
                norm=self.norm,
                is_causal=self.causal,
            )

        with torch.random.fork_rng(devices=()):
            torch.manual_seed(self.seed)
            embedding = TokenEmbedding(len(words), self.dim)
            made, without = encoder(positional), encoder(Positional())
        weights = made.state_dict()
        without.load_state_dict({name: weights[name] for name in without.state_dict()})
        # In float64, what should be equal is seen to be.
        wide = (each.double().eval() for each in (made, without))
        return Model(words, embedding.double(), *wide)

    def _asked(self, stages: Sequence["Stage"]) -> list["Stage"]:
        """The stage of --stage by its number, or all of its name."""
        short = {stage.number: stage.name.split(": ")[-1] for stage in stages}
        found = [stage for stage in stages if self.stage in (str(stage.number), stage.name)]
        found = found or [stage for stage in stages if self.stage == short[stage.number]]
        if found:
            return found
        asked, names = str(self.stage), dict.fromkeys([stage.name for stage in stages])
        names |= dict.fromkeys(short.values())
        known = f"{stages[0].number} … {stages[-1].number}"
        advice = close(asked, names) or f"; the names are {', '.join(names)}"
        raise UserError(f"there is no stage {asked!r}; give a number of {known}, or a name{advice}")


@dataclass(frozen=True)
class Model:
    """The modules that the sentence walks through.

    Attributes:
        words: The vocabulary, token by id.
        embedding: Ids to vectors.
        encoder: With positions.
        without: The same weights without any positions.
    """

    words: dict[str, int]
    embedding: "TokenEmbedding"
    encoder: "Encoder"
    without: "Encoder"

    def embedded(self, tokens: Sequence[str]) -> "Tensor":
        """The vectors ``[seq, dim]`` of some tokens."""
        import torch

        return self.embedding(torch.tensor([self.words[token] for token in tokens]))

    def places(self, x: "Tensor", rounding: float) -> bool:
        """Whether the output tells by the encodings where a token stands, each of equal ones too.

        A causal mask tells orders apart by itself, and one token has no other order; there it is
        asked whether encodings do anything.
        """
        import torch

        from posenc.inspection.order import both_orders

        output, without = (encoder(x[None])[0] for encoder in (self.encoder, self.without))
        equal = torch.cdist(x, x, p=torch.inf) == 0
        if (equal & (torch.cdist(output, output, p=torch.inf) < rounding)).sum() > len(x):
            return False
        if self.encoder.is_causal or len(x) == 1:
            return bool((output - without).abs().max() >= rounding)
        first, *others = range(len(x))
        orders = [[*others, first], [*others[:1], first, *others[1:]]]
        moved = (both_orders(self.encoder, x, order).output_difference for order in orders)
        return any(difference >= rounding for difference in moved)


def _check_draws_nothing(positional: "Positional") -> None:
    """Refuse what would give each pass of a sentence positions of its own."""
    for change in positional.positions:
        if not change.training_only:
            raise UserError(
                f"{change} draws positions at each call anew, without training too, and walk "
                "compares calls; leave that out, to see what positions 0, 1, 2, … do"
            )


def _tokens(sentence: str) -> tuple[list[str], dict[str, int]]:
    """The words and marks of a sentence, and a vocabulary that holds them."""
    from posenc.cli.io import tokens as words_of
    from posenc.cli.io.text import open_text
    from posenc.cli.render.walk_report import ORDERS

    with open_text(sentence, None) as text:
        tokenizer = words_of.trained(text, 1 << 16, False)
        tokens = [token for piece in text.pieces() for token in tokenizer.encode(piece.text).tokens]
    if not tokens:
        raise UserError("no text: give a sentence of at least one word")
    words = words_of.words_by_id(tokenizer)
    for word in ORDERS[0].split():
        words.setdefault(word, len(words))
    return tokens, words


@dataclass(frozen=True)
class _Asked:
    """What says which encoding is meant, where --dim is the width of the whole encoder."""

    encoding: str | None
    dim: int | None
    base: float | None
    convention: str | None
