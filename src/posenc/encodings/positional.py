"""Which encodings a model uses, in all three places."""

from collections.abc import Iterable

from torch import nn

from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding

PLACES = {
    "tokens": TokenEncoding,
    "queries_keys": QueryKeyEncoding,
    "scores": ScoreEncoding,
}


class Positional(nn.Module):
    """The encodings of a model, place by place; those of one place apply in the order given.

    ``Positional()`` holds none at all (NoPE, Kazemnejad et al. 2023, arXiv:2305.19466). A single
    encoding may stand for a tuple of one.

    Args:
        tokens: Encodings added to the token embeddings.
        queries_keys: Encodings of queries and keys inside attention.
        scores: Encodings of the attention scores.

    Raises:
        TypeError: An encoding is given for a place where it does not act.

    Example:
        >>> from posenc import Sinusoidal
        >>> Positional(tokens=Sinusoidal(16)).tokens
        ModuleList(
          (0): Sinusoidal(16)
        )
    """

    def __init__(
        self,
        tokens: TokenEncoding | Iterable[TokenEncoding] = (),
        queries_keys: QueryKeyEncoding | Iterable[QueryKeyEncoding] = (),
        scores: ScoreEncoding | Iterable[ScoreEncoding] = (),
    ):
        super().__init__()
        self.tokens = _in_place("tokens", tokens)
        self.queries_keys = _in_place("queries_keys", queries_keys)
        self.scores = _in_place("scores", scores)


def _in_place(place: str, encodings: object) -> nn.ModuleList:
    if not isinstance(encodings, nn.Module | Iterable):
        raise TypeError(
            f"{place} is {encodings!r}; it takes an encoding, or several in a tuple. "
            f"Leave it out for none."
        )
    encodings = [encodings] if isinstance(encodings, nn.Module) else list(encodings)  # type: ignore[call-overload]
    for encoding in encodings:
        if not isinstance(encoding, PLACES[place]):
            came = type(encoding).__name__
            homes = [name for name, interface in PLACES.items() if isinstance(encoding, interface)]
            advice = (
                f"Pass it as Positional({homes[0]}=...)."
                if homes
                else (f"Implement {PLACES[place].__name__} from posenc.encodings.base.")
            )
            raise TypeError(
                f"{came} was given for {place}, which takes {PLACES[place].__name__}. {advice}"
            )
    return nn.ModuleList(encodings)
