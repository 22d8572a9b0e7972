"""``posenc walk``: a sentence on its way through an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from posenc.cli import options
from posenc.cli.errors import UserError, check_least, close
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from posenc import Positional
    from posenc.cli.render.walk_stages import Stage
    from posenc.transformer import Encoder

MOST_TOKENS = 64


@dataclass(frozen=True)
class Walk:
    """The weights and embeddings are seeded random numbers: they show the mechanism, not a meaning.
    An encoding acts where it belongs: on the tokens, on queries and keys, or on the scores.
    """

    text: Annotated[str, by_place, option("The sentence.", "TEXT")] = "your cat is a lovely cat"
    encoding: options.Expression = None
    dim: Annotated[int, option("Width of a token.", "N")] = 16
    heads: Annotated[int, option("Number of attention heads; they share the width.", "N")] = 2
    depth: Annotated[int, option("Number of blocks; the first is shown.", "N")] = 1
    inner: Annotated[Optional[int], option("Width of feed-forward.", "N", shown="4 x dim")] = None
    norm: Annotated[
        Literal["pre", "post"],
        option("Whether the norms come before attention and feed-forward, or after their sums."),
    ] = "pre"
    causal: Annotated[bool, option("Hide from each token those after it.")] = False
    stage: Annotated[Optional[str], option("Show one stage alone, as softmax or 14.", "S")] = None
    base: options.Base = None
    convention: options.Convention = None
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
        from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding

        # --dim is the width of the whole encoder.
        asked = SimpleNamespace(
            encoding=self.encoding, dim=None, base=self.base, convention=self.convention
        )
        encoding = chosen(asked, dim=self.dim, seed=self.seed)
        if isinstance(encoding, Positional):
            drawn = [each for each in encoding.positions if not each.training_only]
            if drawn:
                raise UserError(f"{drawn[0]} draws positions anew at each call; leave that out")
            return encoding
        if isinstance(encoding, TokenEncoding):
            return Positional(tokens=encoding)
        if isinstance(encoding, QueryKeyEncoding):
            return Positional(queries_keys=encoding)
        if isinstance(encoding, ScoreEncoding):
            return Positional(scores=encoding)
        raise UserError(
            f"{type(encoding).__name__} changes positions and encodes nothing by itself; give an "
            "encoding, as Rotary(8) or ALiBi(2)"
        )

    def _encoder(self, positional: "Positional") -> "Encoder":
        from posenc.transformer import Encoder

        shape = (self.dim, self.heads, self.depth)
        given = {"inner": self.inner, "norm": self.norm, "is_causal": self.causal}
        return Encoder(*shape, positional=positional, **given).double().eval()  # type: ignore[arg-type]

    def _asked(self, stages: "Sequence[Stage]") -> "list[Stage]":
        """The stage of --stage by its number, or all of its name."""
        names = {stage.number: (stage.name, stage.name.split(": ")[-1]) for stage in stages}
        for found in (
            [stage for stage in stages if self.stage in (str(stage.number), stage.name)],
            [stage for stage in stages if self.stage == names[stage.number][1]],
        ):
            if found:
                return found
        known = dict.fromkeys(name for pair in names.values() for name in pair)
        advice = close(str(self.stage), known) or f"; the names are {', '.join(known)}"
        raise UserError(
            f"there is no stage {self.stage!r}; give a number of {min(names)} … {max(names)}, or a "
            f"name{advice}"
        )


def _tokens(sentence: str) -> tuple[list[str], dict[str, int]]:
    """The words and marks of a sentence, and their ids."""
    from posenc.cli.io.text import open_text, pieces
    from posenc.cli.io.tokens import trained, words_by_id

    with open_text(sentence, None) as text:
        tokenizer = trained(text, 1 << 16, False)
        tokens = [token for piece in pieces(text) for token in tokenizer.encode(piece.text).tokens]
    if not tokens:
        raise UserError("no text: give a sentence of at least one word")
    return tokens, words_by_id(tokenizer)
