"""Encodings written as text: parsed, and never evaluated."""

import ast
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import posenc
from posenc import ALiBi, Learned, Positional, Rotary, Sinusoidal, XPos
from posenc.encodings.expression import encoding_from, names
from posenc.frequencies import DynamicNTK, Geometric, Linear, YaRN

NESTED = YaRN(Geometric(128, base=500_000), factor=16, trained_length=8192)
READ = {
    "Sinusoidal(8, 5e5, 'per_dimension')": Sinusoidal(8, 500_000.0, "per_dimension"),
    " posenc.Rotary( 64 , pairing = 'interleaved' ) ": Rotary(64, pairing="interleaved"),
    "Rotary(YaRN(Geometric(128, base=500000), factor=16, trained_length=8192))": Rotary(NESTED),
    "Rotary(posenc.frequencies.Linear(frequencies.Geometric(8), 2.5))": Rotary(
        Linear(Geometric(8), 2.5)
    ),
    "Rotary(DynamicNTK(Geometric(64), 2.0, 2048).at(8192))": Rotary(
        DynamicNTK(Geometric(64), 2.0, 2048).at(8192)
    ),
    "XPos(Rotary(8), scale_base=100)": XPos(Rotary(8), scale_base=100),
    "ALiBi(8, slopes='geometric', is_causal=True)": ALiBi(8, slopes="geometric", is_causal=True),
    "Learned(8, max_len=16, offset=+2)": Learned(8, 16, offset=2),
    "Positional(tokens=[Sinusoidal(8)], scores=(ALiBi(2), ALiBi(2)))": Positional(
        Sinusoidal(8), (), (ALiBi(2), ALiBi(2))
    ),
}
REFUSED = {
    "Rotary(": "cannot be read",
    "YaRN(Geometric(8), 2, 64)": "is no encoding by itself",
    "Rotary": "'Rotary' is neither a literal nor a call",
    "Rotary()": "missing 1 required positional argument: 'frequencies'",
    "Rotary(63)": "width is 63; it must be a multiple of 2",
    "ALiBi(2.0)": "heads is 2.0",
    "Rotry(64)": "'Rotry' is no encoding; did you mean 'Rotary'?",
    "Alibi(8)": "did you mean 'ALiBi'?",
    "RoPE(64)": "did you mean 'Rotary'?",
    "Rotary(DynamicNTK(Geometric(8), 2, 64))": "depends on the length",
    "Rotary(**{'frequencies': 8})": "neither a literal nor a call",
    "Rotary(8, base=1e4, base=5e5)": "repeated",
    "Rotary(2**5)": "'2 ** 5' is neither a literal nor a call",
    "Rotary(8).table(3)": "'Rotary(8).table' is no encoding",
    "().__class__.__bases__[0]": "is neither a literal nor a call",
    "__import__('os').system('true')": "is no encoding",
    "(" * 500 + "8" + ")" * 500: "cannot be read",
    "Rotary(8)\0": "null bytes",
}


@pytest.mark.parametrize("text", READ)
def test_an_expression_makes_what_python_would(text):
    assert repr(encoding_from(text)) == repr(READ[text])


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_expression_is_refused_in_words(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared below)
        encoding_from(text)
    assert REFUSED[text] in str(caught.value)


def test_nothing_is_evaluated(tmp_path):
    trace = tmp_path / "trace"
    opened = f"open({str(trace)!r}, 'w')"
    for text in (opened, f"Rotary({opened})", f"[ALiBi(8) for _ in [{opened}]]"):
        with pytest.raises(ValueError, match=r"no encoding|neither a literal"):
            encoding_from(text)
    assert not trace.exists()


def test_every_public_encoding_and_schedule_has_its_name():
    kinds = (posenc.TokenEncoding, posenc.QueryKeyEncoding, posenc.ScoreEncoding)
    public = {name: getattr(posenc, name) for name in posenc.__all__}
    encodings = {
        name
        for name, each in public.items()
        if isinstance(each, type) and issubclass(each, kinds) and not each.__abstractmethods__
    }
    assert len(encodings) > 20
    assert encodings | {"YaRN", "DynamicNTK", "PoSE", "Positional"} <= names().keys()
    assert not {"Schedule", "ScoreBias", "PositionRemapping"} & names().keys()


LITERALS = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)  # fmt: skip


@given(st.sampled_from(["ALiBi", "Rotary", "Learned", "Geometric", "Nothing"]),
       st.lists(LITERALS, max_size=2))  # fmt: skip
def test_any_arguments_give_an_encoding_or_a_value_error(name, arguments):
    if any(isinstance(each, int | float) and abs(each) > 64 for each in arguments):
        return  # a width that is only large takes its time
    text = f"{name}({', '.join(map(repr, arguments))})"
    ast.parse(text)
    with suppress(ValueError):
        encoding_from(text)


def test_a_ratio_of_whole_numbers_is_a_number():
    """Schedules of a stated length write their factors so, and nothing is lost."""
    resolved = Rotary(DynamicNTK(Geometric(8), factor=3, trained_length=7).at(10))
    again = encoding_from(f"Rotary({resolved.extra_repr()})")
    assert again.frequencies == resolved.frequencies
    with pytest.raises(ValueError, match="Fraction"):
        encoding_from("Rotary(Linear(Geometric(8), factor=Fraction(1, 0)))")
