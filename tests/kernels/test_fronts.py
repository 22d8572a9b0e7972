"""Fronts call operators where torch runs what is called, and elsewhere the formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.operands import angles, chosen, dtypes, laid, layouts, same, seeds
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import embedding
from torch.utils._python_dispatch import TorchDispatchMode

from posenc import Learned, RoPEMixed, Rotary, Sinusoidal, positions
from posenc.kernels.addition import reference
from posenc.kernels.addition.front import scaled_sum
from posenc.kernels.embedding.front import embedded
from posenc.kernels.operators import NATIVE, TABLES
from posenc.kernels.philox import drawn
from posenc.kernels.rotary.front import RotaryLayout, by_formula, rotate, rotate_heads
from posenc.transformer import TokenEmbedding

pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
native = pytest.mark.skipif(not NATIVE, reason="no native library was built")
HALF, BACK = RotaryLayout(), RotaryLayout(True, True, False, True)


class Watched(TorchDispatchMode):
    """Which operators of ours are called."""

    def __init__(self):
        super().__init__()
        self.called = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "posenc":
            self.called.append(func.name())
        return func(*args, **(kwargs or {}))


def seeded(function, *arguments, **named):
    torch.manual_seed(5)
    return function(*arguments, **named)


def wide(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


TABLE, ROWS, KEPT = angles(3, 2, dtype=torch.float64), wide(3, 5), wide(7, 5)
HEADS = wide(2, 3, 4)
PLACES, EACH = torch.tensor([2, 0, 0]), torch.tensor([[6, 0, 0], [1, 2, 3]])
IDS = torch.tensor([[0, 1, 1], [3, 3, 3]])
FRONTS = {
    "queries": (lambda q: rotate_heads((q,), TABLE, None, HALF)[0], [(2, 2, 3, 6)]),
    "both, looked up": (lambda q, k: torch.cat(rotate_heads((q, k), TABLE, PLACES, BACK), 2),
                        [(1, 3, 2, 4), (1, 3, 1, 4)]),
    "one as both": (lambda q: torch.stack(rotate_heads((q, q), TABLE, None, HALF)), [(1, 2, 3, 4)]),
    "a table that learns": (lambda t: rotate_heads((HEADS,), t, None, HALF)[0], [(3, 2, 2)]),
    "by cosines": (lambda x: rotate(x, *TABLE.unbind(-2), conjugate=True), [(2, 2, 3, 5)]),
    "scale": (lambda x: scaled_sum(x, None, scale=1.7), [(2, 3, 5)]),
    "sum": (lambda x: scaled_sum(x, ROWS, scale=1.7), [(2, 3, 5)]),
    "sum, looked up": (lambda x: scaled_sum(x, KEPT, EACH), [(2, 3, 5)]),
    "sum with rows that learn": (lambda x, t: scaled_sum(x, t, EACH), [(2, 3, 5), (7, 5)]),
    "embedding": (lambda w: embedded(IDS, w, scale=1.7), [(4, 5)]),
    "embedding and sum": (lambda w: embedded(IDS, w, KEPT, EACH), [(4, 5)]),
    "embedding with rows that learn": (lambda w, t: embedded(IDS, w, t), [(4, 5), (3, 5)]),
}  # fmt: skip
DROPPING = {
    "sum": (lambda x: seeded(scaled_sum, x, ROWS, scale=3.0, dropout=0.4), [(2, 3, 5)]),
    "rows that learn": (lambda t: seeded(scaled_sum, ROWS, t, dropout=0.4), [(3, 5)]),
    "embedding": (lambda w: seeded(embedded, IDS, w, KEPT, EACH, dropout=0.4), [(4, 5)]),
}


# Who computes.


@native
def test_plain_calls_run_in_c():
    rotary, sinusoidal, x = Rotary(8), Sinusoidal(8, dropout=0.5), torch.randn(2, 3, 5, 8)
    with Watched() as watched:
        table = rotary.table(torch.arange(5))
        rotary.encode_queries(x, table)
        rotary.encode_both(x, x[:, :1], table, torch.arange(5))
        rotary.encode_queries(torch.nn.Parameter(x, requires_grad=False), table)
        rotary.encode_queries(x.requires_grad_(), table).pow(2).sum().backward()
        with torch.no_grad():
            rotary.encode_both(x, k := x.clone(), table, out=(x, k))
            mixed = RoPEMixed(8, 3)
            mixed.encode_queries(x, mixed.table(positions.grid(1, 5)))
        with torch.inference_mode():
            Learned(8, 5)(x)
        sinusoidal(x[0].bfloat16()).square().sum().backward()
        embedding = TokenEmbedding(50, 8, padding_idx=0)
        embedding(torch.ones(2, 5).long(), torch.randn(5, 8), dropout=0.5).sum().backward()
    assert {name.removeprefix("posenc::") for name in watched.called} == {
        "sincos_", "rotary", "rotary_both_at", "rotary_both_", "rotary_by", "add",
        "scale", "embed_add",
    }  # fmt: skip


# Gradients.


@pytest.mark.parametrize(
    ("run", "shapes"),
    [*FRONTS.values(), *DROPPING.values()],
    ids=[*FRONTS, *(f"{name}, dropped" for name in DROPPING)],
)
def test_first_and_second_derivatives_are_right(run, shapes):
    given = [wide(*shape).requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(run, given)
    assert torch.autograd.gradgradcheck(lambda *given: run(*given).sin(), given)
    tangents = [torch.randn_like(x) for x in given]
    if run not in [run for run, _ in DROPPING.values()]:  # whose keys no transform draws
        _, forward = jvp(run, tuple(given), tuple(tangents))
        made = run(*given)
        weights = torch.randn_like(made)
        back = torch.autograd.grad(made, given, weights)
        pairs = zip(back, tangents, strict=True)
        torch.testing.assert_close((forward * weights).sum(), sum((a * b).sum() for a, b in pairs))


@settings(max_examples=60, deadline=None)
@given(dtype=dtypes, layout=layouts, scale=chosen(None, 22.6), dropout=chosen(0.0, 0.3),
       padding=chosen(None, 3, -1), back=st.booleans(), seed=seeds)  # fmt: skip
def test_gradients_are_the_bits_of_the_formulas(dtype, layout, scale, dropout, padding, back, seed):
    """``sum`` hands gradients back that have stride 0 everywhere."""
    x, weight = (torch.randn(shape).to(dtype).requires_grad_() for shape in ((3, 4, 70), (7, 70)))
    rows, table = torch.randn(4, 70).to(TABLES[dtype]), angles(4, 30, dtype=TABLES[dtype])
    ids, gradient = torch.randint(7, (3, 4)), laid(torch.randn(3, 4, 70).to(dtype), layout)
    turned = (x,), table, None, HALF.backwards() if back else HALF
    dropping = seeded(drawn, dropout)
    scaled = 1.0 if scale is None else scale
    numbers = (scaled, *(dropping.numbers if dropping else (1.0, 0, 0)))
    ours = (
        *rotate_heads(*turned),
        seeded(scaled_sum, x, rows, scale=scale, dropout=dropout),
        seeded(embedded, ids, weight, rows, scale=scale, dropout=dropout, padding_idx=padding),
    )
    want = (
        *by_formula(*turned),
        reference.scaled_sum(x, rows, None, *numbers),
        reference.scaled_sum(embedding(ids, weight, padding_idx=padding), rows, None, *numbers),
    )
    assert same(ours, want)
    for made, formula, content in zip(ours, want, (x, x, weight), strict=True):
        assert same(*[torch.autograd.grad(y, content, gradient) for y in (made, formula)])


INTO = {
    "rotation": lambda x: rotate_heads(given := (x,), TABLE, None, HALF, given)[0],
    "sum": lambda x: scaled_sum(x, ROWS[:, :4], scale=3.0, out=x),
}


@pytest.mark.parametrize("run", INTO.values(), ids=INTO)
def test_what_was_overwritten_is_noticed_and_learns(run):
    x, weight = wide(2, 3, 4), wide(2, 3, 4).requires_grad_()
    product = (x * weight).sum()
    run(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    with pytest.raises(RuntimeError, match="leaf"):
        run(weight)
    assert torch.autograd.gradcheck(lambda x: run(x * 2), weight)


# Compiled and exported.


@pytest.mark.compiles
@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("learns", [False, True])
def test_a_compiled_graph_has_no_break_and_the_same_bits(name, learns):
    run, shapes = FRONTS[name]
    torch.compiler.reset()
    given = [wide(*shape).requires_grad_(learns) for shape in shapes]
    made, want = torch.compile(run, fullgraph=True, backend="aot_eager")(*given), run(*given)
    assert same(made, want)
    if learns:
        assert same(*[torch.autograd.grad(y, given, torch.ones_like(y)) for y in (made, want)])
