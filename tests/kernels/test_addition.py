"""The sum as encodings call it: its gradients, its dropout, and who computes it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functionalize, grad, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from posenc import Learned, Sinusoidal
from posenc.kernels.addition import cpu as native
from posenc.kernels.addition import reference
from posenc.kernels.addition.operator import gradient_of_x, scaled_sum
from posenc.kernels.library import library
from posenc.kernels.philox import Dropping, drawn


@pytest.fixture
def calls(monkeypatch):
    """What happens to each call that asks for C: whether C took it."""
    taken = []

    def recording(function):
        def recorded(*arguments, **named):
            made = function(*arguments, **named)
            taken.append(made is not None)
            return made

        return recorded

    for name in ("scaled_sum", "gradient_of_x"):
        monkeypatch.setattr(native, name, recording(getattr(native, name)))
    return taken


def seeded(function, *arguments, **named):
    torch.manual_seed(5)
    return function(*arguments, **named)


# Gradients.


@settings(max_examples=15, deadline=None)
@given(
    scale=st.sampled_from([None, 1.7]), dropout=st.sampled_from([0.0, 0.4]), looked_up=st.booleans()
)
def test_first_and_second_derivatives_are_right(scale, dropout, looked_up):
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    table = torch.randn(7 if looked_up else 3, 5, dtype=torch.float64)
    positions = torch.tensor([[6, 0, 0], [1, 2, 3]]) if looked_up else None

    def run(x):
        return seeded(scaled_sum, x, table, positions, scale=scale, dropout=dropout)

    assert torch.autograd.gradcheck(run, x)
    assert torch.autograd.gradgradcheck(lambda x: run(x).sin(), x)


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.float64]),
    scale=st.sampled_from([None, 22.627416997969522]), dropout=st.sampled_from([0.0, 0.3]),
    layout=st.sampled_from(["contiguous", "transposed", "sliced", "unaligned", "expanded"]),
)  # fmt: skip
def test_gradients_are_the_bits_of_the_reference(memory, dtype, scale, dropout, layout):
    x = torch.randn(2, 4, 4, 70).to(dtype).requires_grad_()
    table = torch.randn(4, 70, dtype=torch.promote_types(dtype, torch.float32))
    gradient = memory(torch.randn(2, 4, 4, 70).to(dtype), layout)
    made = seeded(scaled_sum, x, table, scale=scale, dropout=dropout)
    want = reference.scaled_sum(x, table, scale=scale, dropping=seeded(drawn, dropout))
    assert torch.equal(made, want)
    (got,) = torch.autograd.grad(made, x, gradient)
    (expected,) = torch.autograd.grad(want, x, gradient)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_tables_that_learn_get_their_gradient(dropout, calls):
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    positions = torch.tensor([[8, 0, 0], [1, 2, 3]])

    def run(x, weight):
        return seeded(scaled_sum, x, weight, positions, scale=3.0, dropout=dropout)

    assert torch.autograd.gradcheck(run, (x, weight))
    assert not calls


def test_nothing_but_the_key_is_kept_for_the_gradient():
    """Neither the mask nor the content: what autograd would save is counted."""
    kept = []
    x = torch.randn(4, 64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x):
        scaled_sum(x, torch.randn(4, 64), scale=2.0, dropout=0.5)
    assert not kept


def test_without_scale_and_dropout_the_gradient_is_handed_on():
    gradient = torch.randn(3)
    assert gradient_of_x(gradient, None, None) is gradient


def test_batched_gradients_of_a_sum_that_ran_in_c():
    """``is_grads_batched`` runs the recorded backward inside vmap: one mask for all."""
    x = torch.randn(3, 8, requires_grad=True)
    made = scaled_sum(x, torch.randn(3, 8), scale=2.0, dropout=0.5)
    gradients = torch.randn(4, 3, 8)
    (got,) = torch.autograd.grad(made, x, gradients, is_grads_batched=True, retain_graph=True)
    want = [torch.autograd.grad(made, x, g, retain_graph=True)[0] for g in gradients]
    assert torch.equal(got, torch.stack(want))


def test_recomputed_activations_drop_the_same_elements():
    from torch.utils.checkpoint import checkpoint

    x, table = torch.ones(50, 64, requires_grad=True), torch.zeros(50, 64)
    for reentrant in (False, True):
        made = checkpoint(
            lambda x: scaled_sum(x, table, dropout=0.5).square(), x, use_reentrant=reentrant
        )
        (gradient,) = torch.autograd.grad(made.sum(), x) if not reentrant else (None,)
        if reentrant:
            x.grad = None
            made.sum().backward()
            gradient = x.grad
        assert torch.equal(gradient == 0, made == 0)
        assert (made == 0).any()


# Dropout.


@pytest.mark.parametrize("encoding", [Sinusoidal(64, dropout=0.25), Learned(64, 50, dropout=0.25)])
def test_the_same_elements_fall_with_and_without_c(encoding, monkeypatch):
    x = torch.randn(8, 50, 64)
    with torch.no_grad():
        made = seeded(encoding, x)
        monkeypatch.setattr(native, "_native", lambda: None)
        assert torch.equal(seeded(encoding, x), made)
    assert torch.equal(seeded(encoding, x.requires_grad_()), made)
    assert (made == 0).double().mean().item() == pytest.approx(0.25, abs=0.015)


@pytest.mark.parametrize("dropout", [0.0, 1.0])
def test_at_its_ends_dropout_draws_nothing(dropout):
    x = torch.randn(3, 4)
    state = torch.get_rng_state()
    made = scaled_sum(x, x, dropout=dropout)
    assert torch.equal(made, 2 * x * (1 - dropout))
    assert torch.equal(torch.get_rng_state(), state)


def test_another_device_in_force_changes_nothing():
    x = torch.randn(3, 4)
    want = seeded(scaled_sum, x, x, dropout=0.5)
    with torch.device("meta"):
        assert torch.equal(seeded(scaled_sum, x, x, dropout=0.5), want)


# Who computes it.


@pytest.mark.skipif(library() is None, reason="no native library was built")
def test_plain_calls_run_in_c(calls):
    encoding, x = Sinusoidal(8, scale="sqrt_dim", dropout=0.5), torch.randn(2, 5, 8)
    table = encoding.table(torch.arange(9))
    encoding(x)
    encoding.encode(x, table, torch.arange(5))
    encoding.encode(x, table, torch.tensor([[8, 8, 1, 2, 3]] * 2), out=x)
    Sinusoidal(8, batch_first=False)(x, torch.arange(10).view(5, 2))
    encoding(x.bfloat16().requires_grad_()).square().sum().backward()
    with torch.inference_mode():
        Learned(8, 5)(x)
    assert len(calls) >= 7
    assert all(calls)


class Tagged(torch.Tensor):
    """A subclass that only wants to be seen."""


TRANSFORMS = {
    "vmap": lambda run, x: vmap(run)(x),
    "vjp": lambda run, x: vjp(run, x)[0],
    "jvp": lambda run, x: jvp(run, (x,), (torch.ones_like(x),))[0],
    "functionalize": lambda run, x: functionalize(run)(x),
    "make_fx": lambda run, x: make_fx(run)(x)(x),
    "jit.trace": lambda run, x: torch.jit.trace(run, x, check_trace=False)(x),
    "subclass": lambda run, x: run(x.as_subclass(Tagged)).as_subclass(torch.Tensor),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_see_torchs_own_operations(transform, calls):
    encoding, x = Sinusoidal(8, scale="sqrt_dim"), torch.randn(2, 5, 8)
    table = encoding.table(torch.arange(5))
    want = encoding.encode(x, table)
    calls.clear()
    got = transform(lambda x: encoding.encode(x, table), x)
    assert not any(calls)
    torch.testing.assert_close(got, want)


def test_dropout_in_transforms_is_torchs():
    x, table = torch.ones(3, 40), torch.zeros(40)

    def run(x):
        return scaled_sum(x, table, dropout=0.5)

    different = vmap(run, randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    same = vmap(run, randomness="same")(x)
    assert torch.equal(same[0], same[1])
    each = vmap(grad(lambda x: run(x).sum()), randomness="different")(x)
    assert set(each.unique().tolist()) == {0.0, 2.0}


def test_fake_and_meta_tensors_have_shapes_only(calls):
    from torch._subclasses import FakeTensorMode

    encoding = Sinusoidal(8, dropout=0.5)
    with FakeTensorMode():
        assert encoding(torch.empty(2, 5, 8)).shape == (2, 5, 8)
    assert encoding(torch.empty(2, 5, 8, device="meta")).is_meta
    assert not any(calls)


@pytest.mark.compiles
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_compiled_graph_has_no_break(dropout):
    encoding, x = Sinusoidal(16, scale=3.0, dropout=dropout), torch.randn(2, 5, 16)
    table, positions = encoding.table(torch.arange(9)), torch.tensor([8, 0, 1, 1, 2])
    torch.compiler.reset()
    run = torch.compile(encoding.encode, fullgraph=True, backend="aot_eager")
    got = run(x, table, positions)
    kept = got != 0
    want = reference.scaled_sum(x, table, positions, scale=3.0)
    torch.testing.assert_close(got[kept], want[kept] / (1 - dropout))


# What encodings take.


def test_rows_are_looked_up_by_position():
    encoding, x = Sinusoidal(16, scale="sqrt_dim"), torch.randn(2, 5, 16)
    kept = encoding.table(torch.arange(100))
    positions = torch.tensor([[99, 0, 1, 1, 2], [5, 6, 7, 8, 9]])
    want = encoding(x, positions)
    assert torch.equal(encoding.encode(x, kept, positions), want)
    assert torch.equal(encoding.encode(x, kept, positions.int()), want)
    second = Sinusoidal(16, scale="sqrt_dim", batch_first=False)
    for where in (positions, positions[0]):
        got = second.encode(x.transpose(0, 1), kept, where)
        assert torch.equal(got.transpose(0, 1), encoding(x, where))


def test_out_is_written_and_noticed_by_autograd():
    encoding, x = Sinusoidal(8), torch.randn(2, 5, 8)
    want, room = encoding(x), torch.empty_like(x)
    table = encoding.table(torch.arange(5))
    assert encoding.encode(x, table, out=room) is room
    assert torch.equal(room, want)
    weight = torch.randn(2, 5, 8, requires_grad=True)
    product = (x * weight).sum()
    assert encoding.encode(x, table, out=x) is x
    assert torch.equal(x, want)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_addition_in_place_of_a_computed_tensor_passes_its_gradient():
    table, x = torch.randn(3, 4).double(), torch.randn(3, 4).double().requires_grad_()

    def in_place(x):
        y = x * 2
        return scaled_sum(y, table, scale=3.0, out=y)

    assert torch.autograd.gradcheck(in_place, x)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda e, x, t: e.encode(x, t, out=x.half()), ValueError, "out is torch.float16 (2"),
        (lambda e, x, t: e.encode(x, t, out=x[0]), ValueError, "it must be torch.float32 (2"),
        (lambda e, x, t: e.encode(x, t, torch.tensor([9] * 5)), IndexError, "out of range|past"),
        (lambda e, x, t: e.encode(x, t, torch.arange(4)), ValueError, "x has 5 tokens"),
        (lambda e, x, t: e.encode(x, t, torch.zeros(5)), TypeError, "they must be integers"),
        (lambda e, x, t: e.encode(x, t[None], torch.arange(5)), ValueError, "one row a position"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, text):
    encoding = Sinusoidal(8)
    with pytest.raises(error) as caught:
        call(encoding, torch.randn(2, 5, 8), encoding.table(torch.arange(5)))
    assert any(words in str(caught.value) for words in text.split("|"))


def test_the_mask_counts_elements_along_the_axes_and_not_in_memory():
    x, table, dropping = torch.randn(4, 6, 5), torch.zeros(6, 5), Dropping(0.5, 3)
    want = reference.scaled_sum(x, table, dropping=dropping)
    other = x.transpose(0, 1).contiguous().transpose(0, 1)
    for function in (reference.scaled_sum, native.scaled_sum):
        made = function(other, table, dropping=dropping)
        assert made is None or torch.equal(made, want)
