"""An argument that is set on a built encoding does what it would have done, or is refused."""

import importlib
import io
import re
from contextlib import suppress
from math import log

import pytest
import torch
from torch.func import functional_call
from torch.nn.utils import parametrize

from posenc import (
    DAPE,
    FIRE,
    GRAPE,
    KERPLE,
    ALiBi,
    AxialLearned,
    CoPE,
    Cyclic,
    DINOv3Rotary,
    Learned,
    LogTemperature,
    MultimodalRotary,
    NeRFFeatures,
    PerceiverFeatures,
    QueryTemperature,
    RelativeLogits,
    RemappedRotary,
    ReRoPE,
    Rotary,
    Shaw,
    Sinusoidal,
    StartTokenRotary,
    T5Bias,
    Temperature,
    TransformerXL,
    XPos,
)
from posenc.frequencies import Geometric
from posenc.positions import consecutive
from posenc.testing import Case
from posenc.transformer import BatchNorm, LayerNorm, MultiHeadAttention, TokenEmbedding

FILES = (
    "arithmetic", "axial", "content", "features", "grid_tokens", "methods", "queries_keys",
    "scores", "selective", "tokens",
)  # fmt: skip
EVERY = {
    f"{file}-{name}": case
    for file in FILES
    for name, case in importlib.import_module(f"tests.contracts.test_{file}").CASES.items()
}


def seen(case: Case, module: torch.nn.Module) -> list[torch.Tensor]:
    subject, here = case.subject(), consecutive(6)
    torch.manual_seed(0)
    table = subject.tables(module.train(), here)
    return [table, *subject.run(module, subject.content(6), here)]


def shapes(module: torch.nn.Module) -> list[torch.Size]:
    return [value.shape for value in module.state_dict().values()]


def same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(
        one.shape == other.shape and torch.equal(one, other)
        for one, other in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_no_argument_is_set_in_vain(case):
    for name, value in case.changes.items():
        module, other = case.module(), case.module(**{name: value})
        if name not in vars(module) or shapes(module) != shapes(other):
            continue  # parameters have other shapes, or it is a property
        other.load_state_dict(dict(module.state_dict()))  # what is drawn when it is built is drawn
        with suppress(AttributeError, ValueError, TypeError):
            before = seen(case, module)
            setattr(module, name, getattr(other, name))
            now, want = seen(case, module), seen(case, other)
            assert same(now, want) or same(before, want), f"{name} is set, and not as it was built"


@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_no_size_is_set_in_vain(case):
    """Parameters have the shapes, and tables the widths, of what was given when it was built."""
    for name, value in case.changes.items():
        module, other = case.module(), case.module(**{name: value})
        if not {name} <= vars(module).keys() & vars(other).keys():
            continue  # it is a parameter itself
        if shapes(module) == shapes(other) or vars(module)[name] is None:
            continue  # of a part that is not there nothing can be computed
        if vars(module)[name] is vars(other)[name]:
            continue
        with pytest.raises(AttributeError, match=f"computed from {name} .*Build another"):
            setattr(module, name, getattr(other, name))


@pytest.mark.parametrize(
    ("encoding", "name", "value"),
    [
        (Rotary(8), "frequencies", Geometric(8, 500.0)),
        (Rotary(8), "pairing", "interleaved"),
        (Sinusoidal(8), "base", 500.0),
        (Sinusoidal(8), "scale", "sqrt_dim"),
        (ALiBi(8), "alibi_bias_max", 4.0),
        (ALiBi(8), "heads", 4),
        (Shaw(2, 8, 3), "reach", 2),
        (Learned(4, 9), "max_len", 12),
        (T5Bias(8), "bidirectional", False),
        (T5Bias(8), "trained_length", 64),
        (MultimodalRotary(Rotary(8), (2, 1, 1)), "rotary", Rotary(8, base=500.0)),
        (RemappedRotary(2, Rotary(8), ReRoPE(4)), "rotary", Rotary(8, base=500.0)),
        (RemappedRotary(2, Rotary(8), ReRoPE(4)), "remapping", ReRoPE(6)),
        (DAPE(2, ALiBi(2)), "bias", KERPLE(2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_computed_from_stays_as_it_is(encoding, name, value):
    kind = type(encoding).__name__
    with pytest.raises(AttributeError, match=f"{kind} computed from {name} .*Build another {kind}"):
        setattr(encoding, name, value)
    setattr(encoding, name, getattr(encoding, name))


@pytest.mark.parametrize(
    ("encoding", "name", "value"),
    [
        (Cyclic(2, ALiBi(2), 6), "period", -3),
        (Cyclic(2, ALiBi(2), 6), "period", 0),
        (TransformerXL(2, 4), "clamp_len", -3),
        (RelativeLogits(2, 8, clip=1.0), "clip", 0.0),
        (LogTemperature(2), "floor", 0),
        (LogTemperature(2), "alpha", float("nan")),
        (QueryTemperature(8), "period", 0),
        (QueryTemperature(8), "form", "llama"),
        (Temperature(2), "scale", "0.5"),
        (GRAPE(8, 2), "speed", 0.0),
        (Sinusoidal(8), "batch_first", "no"),
        (CoPE(2, 4, 8), "scaled", 1),
        (Cyclic(2, ALiBi(2), 6), "period", torch.tensor(8)),
        (GRAPE(8, 2), "speed", torch.tensor(0.5)),
        (QueryTemperature(8), "scale", torch.tensor(True)),
        (Sinusoidal(8), "dropout", float("nan")),
        (Sinusoidal(8), "offset", 1.5),
        (Learned(8, 5), "std", -1.0),
        (GRAPE(8, 2), "std", 0),
        (ALiBi(2), "slopes", (0.5, float("nan"))),
        (XPos(Rotary(8)), "origin", float("nan")),
        (StartTokenRotary(Rotary(8), Rotary(8), 2), "count", -1),
        (DINOv3Rotary(8, (7, 7)), "jitter", 0.5),
        (FIRE(2), "threshold", float("inf")),
        (FIRE(2), "negative_slope", -1.0),
        (MultiHeadAttention(8, 2), "dropout", True),
        (MultiHeadAttention(8, 2), "scale", float("nan")),
        (MultiHeadAttention(8, 2), "window", 0),
        (LayerNorm(8), "eps", -1.0),
        (TokenEmbedding(5, 8), "padding_idx", -1),
    ],
)  # fmt: skip
def test_what_is_set_is_held_to_what_the_constructor_asks(encoding, name, value):
    before = getattr(encoding, name)
    told = re.escape(repr(value))
    with pytest.raises(ValueError, match=rf"{name} is {told}; it must be "):
        setattr(encoding, name, value)
    assert getattr(encoding, name) == before
    setattr(encoding, name, before)


def test_what_somebody_derives_may_hold_layers_and_vectors_by_any_name():
    class Layered(Learned):
        __module__ = "somebodys"

        def __init__(self, dim, max_len):
            super().__init__(dim, max_len)
            self.dropout = torch.nn.Dropout(0.5)
            self.threshold = torch.nn.Parameter(torch.ones(dim))

        def encode(self, x, table):
            return self.dropout(x + table * self.threshold)

    class Sloped(ALiBi):
        __module__ = "somebodys"

        def __init__(self, heads):
            super().__init__(heads)
            self.slopes = torch.nn.Parameter(torch.tensor(self.slopes))

    x = torch.ones(2, 4)
    assert set(Layered(4, 3)(x).eq(0).flatten().tolist()) == {True, False}
    assert Layered(4, 3).eval()(x).isfinite().all()
    assert torch.equal(Sloped(2).slopes, torch.tensor(ALiBi(2).slopes))


def test_what_somebody_derives_may_learn_a_number_and_hold_what_it_likes():
    class Learning(LogTemperature):
        __module__ = "somebodys"

        def __init__(self, heads):
            super().__init__(heads)
            self.alpha = torch.nn.Parameter(torch.tensor(0.25))
            self.kept = self.clip = False

    module, scores, at = Learning(2), torch.ones(1, 2, 3, 3), [0, 900, 9000]
    module.kept, module.clip = torch.ones(2), torch.nn.functional.hardtanh
    module.training = 1
    made = module(scores, at, at)
    assert torch.equal(made, LogTemperature(2, alpha=0.25)(scores, at, at))
    assert torch.autograd.grad(made.sum(), module.alpha)[0].isfinite()
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    Learning(2).load_state_dict(torch.load(file, weights_only=True))
    with pytest.raises(ValueError, match="alpha is tensor"):
        LogTemperature(2, alpha=torch.tensor(0.25))


@pytest.mark.parametrize(
    ("encoding", "name", "value"),
    [
        (AxialLearned(8, (2, 3)), "join", "forward"),
        (NeRFFeatures(), "include_input", True),
        (PerceiverFeatures((4, 4)), "include_input", False),
    ],
    ids=["AxialLearned", "NeRFFeatures", "PerceiverFeatures"],
)
def test_what_decides_the_width_is_not_set(encoding, name, value):
    with pytest.raises(AttributeError, match=f"computed from {name} when it was built"):
        setattr(encoding, name, value)


@pytest.mark.parametrize(
    ("encoding", "name", "value"),
    [
        (Cyclic(2, ALiBi(2), 6), "period", -8.0),
        (GRAPE(8, 2), "speed", float("nan")),
        (Temperature(2), "scale", float("inf")),
    ],
)
def test_what_learns_begins_with_what_the_constructor_asks(encoding, name, value):
    before = getattr(encoding, name)
    with pytest.raises(ValueError, match=rf"{name} is {value!r}; it must be "):
        setattr(encoding, name, torch.nn.Parameter(torch.tensor(value)))
    assert getattr(encoding, name) == before


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        (Temperature(4), "scale"),
        (LogTemperature(4), "alpha"),
        (LogTemperature(4), "floor"),
        (QueryTemperature(8), "scale"),
        (QueryTemperature(8), "period"),
        (Cyclic(4, ALiBi(4), 6), "period"),
        (GRAPE(8, 4), "speed"),
        (RelativeLogits(4, 8, clip=1.0), "clip"),
        (FIRE(4), "threshold"),
        (TransformerXL(4, 4), "clamp_len"),
        (StartTokenRotary(Rotary(8), Rotary(8), 2), "count"),
        (MultiHeadAttention(8, 4), "window"),
        (BatchNorm(4), "eps"),
    ],
)
def test_what_learns_in_the_place_of_a_number_is_one(encoding, name):
    """Four of them would go along positions or keys, not along heads."""
    before, told = getattr(encoding, name), r"is a tensor of shape \(4,\); it must be one number"
    with pytest.raises(ValueError, match=f"{name} {told}"):
        setattr(encoding, name, torch.nn.Parameter(torch.ones(4)))
    assert getattr(encoding, name) == before


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (4,)])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (MultiHeadAttention(8, 4), "scale"),
        (MultiHeadAttention(8, 4), "dropout"),
        (LayerNorm(4), "eps"),
        (FIRE(4), "negative_slope"),
        (Sinusoidal(8), "dropout"),
    ],
)
def test_what_functions_of_torch_take_does_not_learn(module, name, shape, learns):
    before = getattr(module, name)
    with pytest.raises(ValueError, match=f"{name} is Parameter(.|\n)*; it must be a "):
        setattr(module, name, torch.nn.Parameter(torch.full(shape, 0.5), requires_grad=learns))
    assert getattr(module, name) == before


def test_slopes_that_are_parameters_are_a_row_and_frozen():
    for heads, slopes in ((1, [0.5]), (2, [0.5, 0.25])):
        module = ALiBi(heads)
        with pytest.raises(ValueError, match=r"slopes would get no gradient: ALiBi .* KERPLE"):
            module.slopes = torch.nn.Parameter(torch.tensor(slopes))
        module.slopes = torch.nn.Parameter(torch.tensor(slopes), requires_grad=False)
        with pytest.warns(UserWarning, match="copy construct"):
            made = module.profile([0, 1])
        assert torch.equal(made, ALiBi(heads, slopes=slopes).profile([0, 1]))
    with pytest.raises(ValueError, match=r"slopes is .*; it must be a row of finite numbers"):
        ALiBi(2).slopes = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_slopes_that_are_set_are_one_a_head(count):
    module, row = ALiBi(4), [0.1] * count
    frozen = torch.nn.Parameter(torch.tensor(row), requires_grad=False)
    unknown = torch.nn.Parameter(torch.empty(count, device="meta"))
    for slopes in (tuple(row), torch.tensor(row), torch.nn.Parameter(torch.tensor(row)), frozen,
                   unknown):  # fmt: skip
        with pytest.raises(ValueError, match=f"slopes are {count} numbers; give 4 of them, one a"):
            module.slopes = slopes
    module.slopes = [0.1] * 4
    assert torch.equal(module.profile([1]), ALiBi(4, slopes=[0.1] * 4).profile([1]))


@pytest.mark.parametrize("value", [8.0, 8.5])
def test_a_whole_number_may_learn_where_the_formula_takes_reals(value):
    late, quick = LogTemperature(2, floor=8), QueryTemperature(8, period=8, form="beam")
    late.floor = torch.nn.Parameter(torch.tensor(value))
    quick.period = torch.nn.Parameter(torch.tensor(value))
    for module, made, name, want, slope in (
        (late, late.table([99], [0]), "floor", 1 + 0.1 * log(100 / value), -0.1 / value),
        (quick, quick.table([99]), "period", (1 + 100 / value) ** 0.1,
         -10 / value**2 * (1 + 100 / value) ** -0.9),
    ):  # fmt: skip
        assert made.item() == pytest.approx(want)
        grad = torch.autograd.grad(made.sum(), getattr(module, name))[0]
        assert grad.item() == pytest.approx(slope)
        with pytest.raises(ValueError, match=f"{name} is 0.5; it must be a finite number from 1 o"):
            setattr(module, name, torch.nn.Parameter(torch.tensor(0.5)))


@pytest.mark.parametrize("value", [0.0, -3.0, 0.5, float("nan")])
@pytest.mark.parametrize(
    ("module", "name", "at"),
    [
        (LogTemperature(2, floor=8), "floor", ([9], [0])),
        (QueryTemperature(8, period=8, form="beam"), "period", ([9],)),
    ],
    ids=["floor", "period"],
)
def test_a_whole_number_that_learns_is_asked_again_when_it_is_used(module, name, at, value):
    setattr(module, name, torch.nn.Parameter(torch.tensor(8.0)))
    module.table(*at)
    module.load_state_dict({**module.state_dict(), name: torch.tensor(value)})
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be a finite number from 1 o"):
        module.table(*at)


@pytest.mark.parametrize(
    ("module", "name", "at"),
    [
        (lambda: LogTemperature(2, floor=8), "floor", ([9], [0])),
        (lambda: QueryTemperature(8, period=8, form="beam"), "period", ([9],)),
    ],
    ids=["floor", "period"],
)
def test_a_whole_number_that_learns_may_be_given_without_a_gradient(module, name, at):
    module, wanted = module(), [module().table(*at)]
    setattr(module, name, torch.nn.Parameter(torch.tensor(8.5)))
    wanted.append(module.table(*at))

    def table_of(value):
        return functional_call(_Tables(module), {f"of.{name}": value}, at)

    for value, want in zip((8.0, 8.5), wanted, strict=True):
        assert torch.equal(table_of(torch.tensor(value)), want)
    for value in (0.5, float("nan")):
        with pytest.raises(ValueError, match=f"{name} is {value}; it must be a finite number fro"):
            table_of(torch.tensor(value))
    with pytest.raises(ValueError, match=rf"{name} is a tensor of shape \(2,\); it must be one"):
        table_of(torch.tensor([8.0, 8.5]))
    number = torch.tensor(8.5)
    slope = torch.autograd.grad(wanted[1].sum(), getattr(module, name))[0]
    torch.testing.assert_close(torch.func.jvp(table_of, (number,), (number / 8.5,))[1].sum(), slope)

    parametrize.register_parametrization(module, name, _Exponential())
    with torch.no_grad():  # where what it gives has none
        torch.testing.assert_close(module.table(*at), wanted[1])


class _Tables(torch.nn.Module):
    """The tables of an encoding, as its output."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, *at):
        return self.of.table(*at)


class _Exponential(torch.nn.Module):
    """What stays above 0."""

    def forward(self, x):
        return x.exp()

    def right_inverse(self, y):
        return y.log()


def test_a_frozen_period_is_asked_again_when_it_is_used():
    module = QueryTemperature(8)
    module.period = torch.nn.Parameter(torch.tensor(8), requires_grad=False)
    module.load_state_dict({**module.state_dict(), "period": torch.tensor(-8)})
    with pytest.raises(ValueError, match="period is -8; it must be a finite number from 1 on"):
        module.table([9])


def test_steps_do_not_learn():
    for form in ("llama4", "mistral"):
        module = QueryTemperature(8, period=8, form=form)
        module.period = torch.nn.Parameter(torch.tensor(8.0))
        with pytest.raises(ValueError, match=f"a floating tensor; the steps of '{form}' have no g"):
            module.table([0, 9])
        module.period = torch.nn.Parameter(torch.tensor(8), requires_grad=False)
        want = QueryTemperature(8, period=8, form=form).table([0, 9])
        assert torch.equal(module.table([0, 9]), want)
    with pytest.raises(ValueError, match=r"period is 8\.0; it must be a whole number from 1 on"):
        Cyclic(2, ALiBi(2), 6).period = torch.nn.Parameter(torch.tensor(8.0))


class Tempered(Temperature):
    """A scale that may learn."""

    def __init__(self, heads, learns=True):
        super().__init__(heads)
        self.scale = torch.nn.Parameter(torch.tensor(0.25), requires_grad=learns)


@pytest.mark.parametrize("learns", [True, False])
def test_a_constructor_of_ours_takes_a_number_and_nothing_that_learns(learns):
    scale = torch.nn.Parameter(torch.tensor(0.25), requires_grad=learns)
    with pytest.raises(ValueError, match="scale is Parameter"):
        Temperature(2, scale=scale)


def test_what_learned_may_be_frozen():
    module = Tempered(2).requires_grad_(False)
    module.load_state_dict(module.state_dict(), assign=True)
    built = Tempered(2, learns=False)
    with torch.device("meta"):
        loaded = Tempered(2, learns=False)
    loaded.load_state_dict(module.state_dict(), assign=True)
    for each in (module, built, loaded):
        assert torch.equal(each.table([0], [0]), Temperature(2, scale=0.25).table([0], [0]))
        assert not each.scale.requires_grad
    with pytest.raises(ValueError, match="scale is inf; it must be a finite number"):
        built.scale = torch.nn.Parameter(torch.tensor(float("inf")), requires_grad=False)


def test_a_temperature_may_learn():
    class Learning(Temperature):
        def __init__(self, heads, **options):
            super().__init__(heads, **options)
            self.scale = torch.nn.Parameter(torch.tensor(0.25))

    scores, at = torch.ones(1, 2, 3, 3), [0, 900, 9000]
    for options in ({}, {"trained_length": 8}):
        module = Learning(2, **options)
        made, want = (
            each(scores, at, at) for each in (module, Temperature(2, scale=0.25, **options))
        )
        assert torch.equal(made, want)
        assert torch.autograd.grad(made.sum(), module.scale)[0].isfinite()
