"""A class that changes a method of ours is heeded by attention and encoder alike, or refused."""

import pytest
import torch

from posenc import (
    ALiBi,
    CounterRotary,
    MultimodalRotary,
    Positional,
    QueryTemperature,
    RemappedRotary,
    Rotary,
    SelfExtend,
    Sinusoidal,
    T5Bias,
    Temperature,
    XPos,
    attention,
    move_keys,
    rerotate,
)
from posenc.encodings.base import RelativeBias
from posenc.frequencies import ByLength, Geometric
from posenc.interop.serving import RequestTables
from posenc.transformer import Encoder
from posenc.transformer.attention import join, split


def changed(kind, *names, **more):
    """A class whose methods of these names give half as much again."""

    def of(name):
        def method(self, *given, **named):
            made = getattr(super(made_class, self), name)(*given, **named)
            return tuple(1.5 * x for x in made) if isinstance(made, tuple) else 1.5 * made

        return method

    made_class = type(f"Changed{kind.__name__}", (kind,), {name: of(name) for name in names} | more)
    return made_class


@pytest.mark.parametrize(
    ("kind", "names", "told"),
    [
        (Sinusoidal, ["forward"], "forward in ChangedSinusoidal, which attention and encoders"),
        (Rotary, ["forward"], "forward in ChangedRotary, which attention and encoders"),
        (Temperature, ["forward"], "forward in ChangedTemperature, which attention and encoders"),
        (Rotary, ["encode_both"], "encode_both and inherits what encodes one side"),
        (Rotary, ["encode_both", "encode_keys"], "encode_both and inherits"),
        (Rotary, ["encode_values"], "Write changes_values = True"),
        (Rotary, ["encode_output"], "Write changes_output = True"),
        (ALiBi, ["encode"], "ScoreBias, whose table is added, and defines encode"),
        (ALiBi, ["table"], "table in ChangedALiBi and profile in ALiBi"),
        (ALiBi, ["profile"], "profile in ChangedALiBi and table in ALiBi"),
        (T5Bias, ["table"], "table in ChangedT5Bias and profile in T5Bias"),
    ],
)
def test_what_would_be_read_in_some_places_alone_is_refused(kind, names, told):
    with pytest.raises(TypeError, match=told):
        changed(kind, *names)


def explicitly(encoding, q, k, v):
    """Attention by the two verbs, one after the other."""
    line = torch.arange(q.shape[-2])
    if isinstance(encoding, Rotary | QueryTemperature):
        table = encoding.table(line)
        q, k = encoding.encode_queries(q, table), encoding.encode_keys(k, table)
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return encoding.encode(scores, encoding.table(line, line)).softmax(-1) @ v


@pytest.mark.parametrize("length", [16, 700])
@pytest.mark.parametrize(
    "encoding",
    [
        changed(Rotary, "table")(16),
        changed(Rotary, "encode_queries")(16),
        changed(changed(Rotary, "encode_keys"))(16),
        changed(changed(Rotary, "encode_keys"), "encode_queries")(16),
        changed(QueryTemperature, "encode_queries")(16),
        changed(Temperature, "encode")(4),
        changed(ALiBi, "profile", table=RelativeBias.table)(4),
        changed(T5Bias, "profile")(4),
    ],
    ids=lambda encoding: "-".join(kind.__name__ for kind in type(encoding).__mro__[:3]),
)
def test_what_is_changed_counts_in_rows_of_any_length_and_in_an_encoder(encoding, length):
    torch.manual_seed(0)
    place = "queries_keys" if isinstance(encoding, Rotary | QueryTemperature) else "scores"
    positional = Positional(**{place: encoding})
    q, k, v = torch.randn(3, 1, 4, length, 16)
    with torch.no_grad():
        made = attention(q, k, v, positional=positional)
        torch.testing.assert_close(made, explicitly(encoding, q, k, v), rtol=0, atol=1e-5)
        layer, seen = Encoder(64, 4, 1, positional=positional).eval(), {}
        heads = layer.blocks[0].attention
        heads.register_forward_pre_hook(lambda _, given: seen.update(x=given[0]))
        heads.output.register_forward_pre_hook(lambda _, given: seen.update(joined=given[0]))
        layer(torch.randn(1, length, 64))
        q, k, v = (split(part(seen["x"]), 4) for part in (heads.queries, heads.keys, heads.values))
        wanted = join(explicitly(encoding, q, k, v))
        torch.testing.assert_close(seen["joined"], wanted, rtol=0, atol=1e-5)


LINE = torch.arange(3)
KEYS = torch.ones(1, 2, 3, 8)


@pytest.mark.parametrize(
    "use",
    [
        lambda rotary: MultimodalRotary(rotary, (2, 1, 1)),
        lambda rotary: XPos(rotary),
        lambda rotary: RemappedRotary(2, rotary, SelfExtend(2, 4)),
        lambda rotary: move_keys(KEYS, LINE, LINE + 1, rotary),
        lambda rotary: rerotate(KEYS, LINE, Rotary(8), rotary),
        lambda rotary: rerotate(KEYS, LINE, rotary, Rotary(8)),
        lambda rotary: RequestTables(rotary, ByLength.yarn(Geometric(8), 64)),
    ],
)
@pytest.mark.parametrize("name", ["table", "encode_keys"])
def test_what_reads_frequencies_alone_refuses_other_methods(use, name):
    use(Rotary(8))
    with pytest.raises(TypeError, match=f"ChangedRotary defines {name}, and .* reads frequencies"):
        use(changed(Rotary, name)(8))


def test_an_encoding_that_changes_values_and_says_so_is_taken():
    kind = changed(CounterRotary, "encode_values")
    assert kind.changes_values


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        (Rotary(8), "encode_queries"),
        (Rotary(8), "table"),
        (ALiBi(2), "profile"),
        (Sinusoidal(8), "encode"),
        (T5Bias(2), "table"),
    ],
)
def test_a_method_of_one_object_is_refused(encoding, name):
    """Attention called it where it called methods, and read fields where a kernel served."""
    own = getattr(encoding, name)
    with pytest.raises(AttributeError, match=f"{name} would be that of one object"):
        setattr(encoding, name, lambda *given, **named: own(*given, **named))
    assert name not in vars(encoding)
