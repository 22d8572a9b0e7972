"""``posenc walk``: a sentence on its way through an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_least, close
from posenc.cli.options import Flag, Name, SomeWhole, Whole, by_place, named

if TYPE_CHECKING:
    from posenc import Positional
    from posenc.cli.render.walk_stages import Stage
    from posenc.transformer import Encoder

MOST_TOKENS = 64


@dataclass(frozen=True)
class Walk:
    """Weights and embeddings are seeded random numbers: they show the mechanism, not a meaning. The
    encoding acts in its place: on tokens, on queries and keys, or on scores.
    """

    text: Annotated[str, by_place, named("TEXT"), Doc("The sentence.")] = "your cat is a lovely cat"
    encoding: options.Expression = None
    dim: Annotated[Whole, Doc("Width of a token.")] = 16
    heads: Annotated[Whole, Doc("Number of attention heads; they share the width.")] = 2
    depth: Annotated[Whole, Doc("Number of blocks; the first is shown.")] = 1
    inner: Annotated[SomeWhole, Doc("Width of feed-forward (default: 4 x dim).")] = None
    norm: Annotated[Literal["pre", "post"], Doc("Norms before each part, or after it.")] = "pre"
    causal: Annotated[Flag, Doc("Hide from each token those after it.")] = False
    stage: Annotated[Optional[str], named("S"), Doc("Show one alone, as softmax or 14.")] = None
    base: Annotated[Optional[float], named("X"), Doc("Of wavelengths (default: 10000).")] = None
    convention: Annotated[Name, Doc("The sinusoidal convention (default: paper).")] = None
    seed: options.Seed = 0
    format: options.TextOrJson = "text"

    def run(self) -> None:
        """Walks: the real modules run, in float64, where equal numbers are seen to be."""
        import torch

        from posenc import Positional
        from posenc.cli.render.walk_report import ORDERS, SWAPPED, Walked, print_json, show
        from posenc.cli.render.walk_stages import stages
        from posenc.inspection.order import order_effect
        from posenc.inspection.words import word_vectors

        check_least(1, heads=self.heads, depth=self.depth)
        positional = self._positional()
        tokens, words = _tokens(self.text)
        kept = tokens[:MOST_TOKENS]
        with torch.random.fork_rng(devices=()), torch.no_grad():
            torch.manual_seed(self.seed)
            encoder = self._encoder(positional)
            without = self._encoder(Positional())
            weights = encoder.state_dict()
            without.load_state_dict({name: weights[name] for name in without.state_dict()})
            found = stages(encoder, word_vectors(kept, self.dim, seed=self.seed), kept)
            x = word_vectors(ORDERS[0].split(), self.dim, seed=self.seed)
            effects = {
                "without an encoding": order_effect(without, x, SWAPPED),
                "with the encoding": order_effect(encoder, x, SWAPPED),
            }
        ids, dropped = [words[token] for token in kept], len(tokens) - len(kept)
        shown = found if self.stage is None else self._asked(found)
        walked = Walked(kept, ids, dropped, shown, effects, positional)
        if self.format == "json":
            print_json(self, walked)
        else:
            show(walked, whole=self.stage is None)

    def _positional(self) -> "Positional":
        """The encoding in its place."""
        from posenc import Positional
        from posenc.cli.encodings import chosen
        from posenc.encodings.positional import PLACES

        made: Any = chosen(self)
        if not isinstance(made, Positional):
            place = next(name for name, kind in PLACES.items() if isinstance(made, kind))
            made = Positional(**{place: made})
            if place == "positions":
                raise UserError(f"{self.encoding} encodes nothing by itself; give an encoding")
        return made

    def _encoder(self, positional: "Positional") -> "Encoder":
        from posenc.transformer import Encoder

        shape = (self.dim, self.heads, self.depth)
        given = {"inner": self.inner, "norm": self.norm, "is_causal": self.causal}
        return Encoder(*shape, positional=positional, **given).double().eval()  # type: ignore[arg-type]

    def _asked(self, stages: "Sequence[Stage]") -> "list[Stage]":
        """The stages of --stage: that of its number, or all of its name, or of how this ends."""
        named = [(str(s.number), s.name, s.name.split(": ")[-1]) for s in stages]
        for names in (slice(2), slice(2, 3)):
            pairs = zip(stages, named, strict=True)
            if found := [stage for stage, each in pairs if self.stage in each[names]]:
                return found
        known = close(str(self.stage), dict.fromkeys(name for each in named for name in each[1:]))
        raise UserError(f"there is no stage {self.stage!r}{known}")


def _tokens(sentence: str) -> tuple[list[str], dict[str, int]]:
    """The words and marks of a sentence, and their ids."""
    from posenc.cli.io.tokens import text_from, trained, words_by_id

    text = text_from(sentence, None)
    tokenizer = trained(text, 1 << 16)
    with text() as lines:
        tokens = [token for line in lines for token in tokenizer.encode(line).tokens]
    if not tokens:
        raise UserError("no text: give a sentence of at least one word")
    return tokens, words_by_id(tokenizer)
