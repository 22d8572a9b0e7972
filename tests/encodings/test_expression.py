"""Encodings written as text: parsed, and never evaluated."""

import pytest

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
    "YaRN(Geometric(8), 2, 64)": "no encoding by itself",
    "Rotary()": "missing",
    "ALiBi(2.0)": "heads",
    "RoPE(64)": "did you mean 'Rotary'",
    "Rotary(DynamicNTK(Geometric(8), 2, 64))": "depends on the length",
    "Rotary(8, base=1e4, base=5e5)": "repeated",
    "().__class__.__bases__[0]": "neither a literal nor a call",
    "__import__('os').system('true')": "no encoding",
    "(" * 500 + "8" + ")" * 500: "cannot be read",
    "Rotary(8)\0": "null bytes",
}


@pytest.mark.parametrize("text", READ)
def test_an_expression_makes_what_python_would(text):
    assert repr(encoding_from(text)) == repr(READ[text])


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_expression_is_refused_in_words(text):
    with pytest.raises(ValueError, match=REFUSED[text]):
        encoding_from(text)


def test_a_ratio_of_whole_numbers_is_a_number():
    """Schedules of a stated length write their factors so, and nothing is lost."""
    resolved = Rotary(DynamicNTK(Geometric(8), factor=3, trained_length=7).at(10))
    again = encoding_from(f"Rotary({resolved.extra_repr()})")
    assert again.frequencies == resolved.frequencies
    with pytest.raises(ValueError, match="Fraction"):
        encoding_from("Rotary(Linear(Geometric(8), factor=Fraction(1, 0)))")


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
