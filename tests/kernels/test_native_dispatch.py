"""C runs where nothing but numbers in memory is there, and the reference everywhere else."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from posenc import RoPEMixed, Rotary, Sinusoidal, positions
from posenc.kernels.rotary import cpu as native
from posenc.kernels.sincos import cpu as native_sincos


@pytest.fixture
def calls(monkeypatch):
    """What happens to each call that asks for C: whether C took it."""
    taken = []

    def recording(function):
        def recorded(*arguments, **named):
            made = function(*arguments, **named)
            taken.append(made is not None and made is not False)
            return made

        return recorded

    monkeypatch.setattr(native, "rotate_heads", recording(native.rotate_heads))
    monkeypatch.setattr(native, "rotate", recording(native.rotate))
    monkeypatch.setattr(native_sincos, "fill", recording(native_sincos.fill))
    return taken


@pytest.fixture
def rotary():
    return Rotary(8)


@pytest.fixture
def x():
    return torch.randn(2, 3, 5, 8)


def test_plain_calls_run_in_c(calls, rotary, x):
    table = rotary.table(torch.arange(5))
    rotary.encode_queries(x, table)
    rotary.encode_queries(x, table, out=torch.empty_like(x))
    rotary.encode_both(x, x[:, :1], table, torch.arange(5))
    rotary.encode_queries(torch.nn.Parameter(x, requires_grad=False), table)
    with torch.inference_mode():
        made = rotary.encode_queries(x.clone(), rotary.table(torch.arange(5)))
        rotary.encode_queries(made, table, out=made)
    rotary.encode_queries(x.requires_grad_(), table).pow(2).sum().backward()
    Sinusoidal(8)(x[0])
    with torch.no_grad():
        mixed = RoPEMixed(8, 3)
        mixed.encode_queries(x, mixed.table(positions.grid(1, 5)))
    assert len(calls) >= 12
    assert all(calls)


def dual(run, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(run(forward_ad.make_dual(x, torch.ones_like(x)))).primal


class Tagged(torch.Tensor):
    """A subclass that only wants to be seen."""


TRANSFORMS = {
    "vmap": lambda run, x: torch.func.vmap(run)(x),
    "vmap of another": lambda run, x: torch.func.vmap(lambda _: run(x), out_dims=None)(x),
    "vjp": lambda run, x: torch.func.vjp(run, x)[0],
    "jvp": lambda run, x: torch.func.jvp(run, (x,), (torch.ones_like(x),))[0],
    "functionalize": lambda run, x: torch.func.functionalize(run)(x),
    "forward mode": dual,
    "make_fx": lambda run, x: make_fx(run)(x)(x),
    "jit.trace": lambda run, x: torch.jit.trace(run, x, check_trace=False)(x),
    "subclass": lambda run, x: run(x.as_subclass(Tagged)).as_subclass(torch.Tensor),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_see_torchs_own_operations(transform, calls, rotary, x):
    table = rotary.table(torch.arange(5))
    want = rotary.encode_queries(x, table)
    calls.clear()
    got = transform(lambda q: rotary.encode_queries(q, table), x)
    assert not any(calls)
    assert torch.equal(got, want)


def test_jvp_has_the_right_tangent(rotary, x):
    table = rotary.table(torch.arange(5))
    _, tangent = torch.func.jvp(lambda q: rotary.encode_queries(q, table), (x,), (x,))
    assert torch.equal(tangent, rotary.encode_queries(x, table))


def test_per_sample_gradients(rotary, x):
    table = rotary.table(torch.arange(5))

    def loss(q):
        return rotary.encode_queries(q, table).pow(3).sum()

    each = torch.func.vmap(torch.func.grad(loss))(x)
    whole = x.clone().requires_grad_()
    loss(whole).backward()
    torch.testing.assert_close(each, whole.grad)


def test_batched_gradients_of_a_rotation_that_ran_in_c(rotary, x):
    """``is_grads_batched`` runs the recorded backward inside vmap."""
    table, leaf = rotary.table(torch.arange(5)), x.clone().requires_grad_()
    made = rotary.encode_queries(leaf, table)
    gradients = torch.randn(4, *x.shape)
    (got,) = torch.autograd.grad(made, leaf, gradients, is_grads_batched=True, retain_graph=True)
    want = [torch.autograd.grad(made, leaf, g, retain_graph=True)[0] for g in gradients]
    assert torch.equal(got, torch.stack(want))


def test_fake_and_meta_tensors_have_shapes_only(calls, rotary):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        made = rotary(torch.empty(2, 3, 5, 8), torch.empty(2, 1, 5, 8))[1]
        assert made.shape == (2, 1, 5, 8)
    meta = torch.empty(2, 3, 5, 8, device="meta")
    assert rotary.encode_queries(meta, rotary.table(torch.arange(5, device="meta"))).is_meta
    assert not any(calls)


@pytest.mark.compiles
def test_a_compiled_graph_holds_torchs_own_operations(rotary, x):
    names = []

    def look(graph, _):
        names.extend(node.name for node in graph.graph.nodes)
        return graph.forward

    torch.compiler.reset()
    table = rotary.table(torch.arange(9))

    def both(q, k):
        return rotary.encode_both(q, k, table, torch.arange(5))

    compiled = torch.compile(both, fullgraph=True, backend=look)
    for got, want in zip(compiled(x, x), both(x, x), strict=True):
        torch.testing.assert_close(got, want)
    assert any("mul" in name for name in names)


def test_checkpointed_and_saved_tensors_work(rotary, x):
    from torch.utils.checkpoint import checkpoint

    table, leaf = rotary.table(torch.arange(5)), x.clone().requires_grad_()
    rotary.encode_queries(leaf, table).pow(2).sum().backward()
    want, leaf.grad = leaf.grad, None
    with torch.autograd.graph.save_on_cpu():
        made = checkpoint(rotary.encode_queries, leaf, table, use_reentrant=False)
    made.pow(2).sum().backward()
    assert torch.equal(leaf.grad, want)
