"""Random arguments for everything that can be built: it works, or it says in words why not."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from tests.fuzz.tally import TALLY

import posenc
from posenc import frequencies
from posenc.encodings.base import (
    PositionRemapping,
    QueryKeyEncoding,
    ScoreEncoding,
    TokenEncoding,
)
from posenc.frequencies import Geometric, Schedule
from posenc.transformer import Block, Encoder, KeyValueCache, MultiHeadAttention

SUBJECTS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(posenc, name)
        for name in posenc.__all__
        if inspect.isclass(getattr(posenc, name))
        and not inspect.isabstract(getattr(posenc, name))
        and name != "Positional"
    },
    **{name: getattr(frequencies, name) for name in frequencies.__all__
       if inspect.isclass(getattr(frequencies, name))
       and not inspect.isabstract(getattr(frequencies, name))},
    "Block": Block,
    "Encoder": Encoder,
    "KeyValueCache": KeyValueCache,
    "MultiHeadAttention": MultiHeadAttention,
}  # fmt: skip

INTERNAL = (
    "unsupported operand",
    "not supported between",
    "object is not",
    "has no attribute",
    "must be real number",
    "cannot be interpreted",
    "can't be",
    "cannot unpack",
    "not enough values",
    "too many values",
    "must be a string or",
    "argument must be",
    "invalid literal",
    "unhashable",
    "out of range",
    "keyword argument",
    "positional argument",
    "Expected",
    "expected Tensor",
    "empty(): ",
    "received an invalid combination",
)
"""How Python and torch speak of their own insides, which tells nobody what to pass instead."""

NUMBERS = [-1, 0, 1, 2, 3, 4, 6, 8, 12, 16]
ODDITIES = [None, True, 1.5, -0.5, float("nan"), float("inf"), "4", "half", (), (2, 3), [4], {}]


@st.composite
def calls(draw) -> tuple[str, dict[str, Any]]:
    """A subject and arguments: mostly of the right kind, now and then of none."""
    name = draw(st.sampled_from(sorted(SUBJECTS)))
    given = {}
    for parameter in inspect.signature(SUBJECTS[name]).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        required = parameter.default is parameter.empty
        if required or draw(st.integers(0, 3)) == 0:
            given[parameter.name] = draw(_values(parameter))
    return name, given


def _values(parameter: inspect.Parameter) -> st.SearchStrategy:
    if parameter.name in ("device", "dtype"):  # torch's own words say what torch takes
        return st.none()
    annotation = str(parameter.annotation)
    fitting: list[st.SearchStrategy] = []
    if "Schedule" in annotation or parameter.name in ("frequencies", "of"):
        fitting.append(st.sampled_from([Geometric(8), Geometric(4, 10.0), 8]))
    if "Rotary" in annotation:
        fitting.append(st.builds(posenc.Rotary, st.sampled_from([4, 8])))
    if "int" in annotation:
        fitting.append(st.sampled_from(NUMBERS))
    if "float" in annotation:
        fitting.append(st.sampled_from([0.5, 1.0, 2.0, 10.0, 100.0, 0.0, -1.0]))
    if "bool" in annotation:
        fitting.append(st.booleans())
    if "tuple" in annotation or "Sequence" in annotation:
        small = st.sampled_from([1, 2, 3, 4, 8])
        fitting.append(st.lists(small, min_size=1, max_size=4).map(tuple))
    if parameter.default is not parameter.empty:
        fitting.append(st.just(parameter.default))
    odd = st.sampled_from(ODDITIES)
    return st.one_of(*fitting, *fitting, *fitting, odd) if fitting else odd


def check_call(call: tuple[str, dict[str, Any]]) -> None:
    """Build it and use it."""
    name, given = call
    try:
        made = SUBJECTS[name](**given)
    except (ValueError, TypeError) as refusal:
        _check_words(str(refusal), call)
        TALLY.count("constructors", "refused")
        return
    TALLY.count("constructors", "built")
    try:
        _use(made)
    except (ValueError, TypeError, IndexError) as refusal:
        _check_words(str(refusal), call)
        TALLY.count("constructors", "refused in use")


def _check_words(text: str, call: tuple[str, dict[str, Any]]) -> None:
    assert len(text) > 20, f"{call} was refused with {text!r}"
    internal = [words for words in INTERNAL if words in text]
    assert not internal, f"{call} was refused in the words of something inside: {text}"


def _use(made: Any) -> None:
    here = torch.arange(4)
    if isinstance(made, TokenEncoding):
        x = torch.randn(2, 4, made.dim) if made.batch_first else torch.randn(4, 2, made.dim)
        _check_result(made(x), x)
    elif isinstance(made, QueryKeyEncoding):
        heads = getattr(made, "heads", 2)
        shape = (2, heads, 4, made.head_dim) if made.heads_first else (2, 4, heads, made.head_dim)
        q = torch.randn(shape)
        for out in made(q, q, _points(made, here)):
            _check_result(out, q.new_empty(*shape[:-1], made.encoded_dim))
    elif isinstance(made, ScoreEncoding):
        width = getattr(made, "head_dim", 8)
        width = getattr(getattr(made, "rotary", None), "head_dim", width)
        q = torch.randn(1, made.heads, 4, width)
        points = _points(made, here)
        _check_result(made(q @ q.mT, points, points, q=q, k=q), q @ q.mT)
    elif isinstance(made, PositionRemapping):
        assert made(here).shape == here.shape
    elif isinstance(made, Schedule):
        assert all(w == w for w in made.wavelengths())
    elif isinstance(made, Encoder | Block | MultiHeadAttention):
        dim = made.dim if hasattr(made, "dim") else made.attention.dim
        x = torch.randn(1, 3, dim)
        _check_result(made(x), x)


def _points(made: Any, here: torch.Tensor) -> torch.Tensor:
    """Positions as the encoding takes them: numbers, or points with as many coordinates."""
    for axes in (0, 2, 3):
        places = here if not axes else here[:, None].expand(-1, axes)
        try:
            made.table(places) if not isinstance(made, ScoreEncoding) else made.table(
                places, places
            )
        except (ValueError, TypeError):
            continue
        return places
    return here


def _check_result(out: torch.Tensor, content: torch.Tensor) -> None:
    assert out.shape == content.shape
    assert out.dtype == content.dtype
    assert out.isfinite().all()
