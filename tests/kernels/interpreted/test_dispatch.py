"""Encodings take the kernels by themselves, forward and backward."""

import pytest
import torch

from posenc import Rotary, Sinusoidal, guards
from posenc.kernels.addition import triton as addition
from posenc.kernels.rotary import triton as rotary
from posenc.kernels.sincos import triton as sincos
from posenc.transformer import TokenEmbedding


@pytest.fixture
def calls(accelerated, monkeypatch):
    """Which kernels have been launched."""
    launched = []

    def watch(module, name):
        run = getattr(module, name)

        def watched(*arguments, **named):
            launched.append(name)
            return run(*arguments, **named)

        monkeypatch.setattr(module, name, watched)

    for module, name in (
        (rotary, "rotate_heads"),
        (rotary, "rotate"),
        (addition, "scaled_sum"),
        (addition, "gradient_of_x"),
        (sincos, "fill"),
    ):
        watch(module, name)
    return launched


def reference_of(run):
    """What pure torch makes of the same, with the same random numbers."""
    before = guards.ACCELERATORS
    guards.ACCELERATORS = set()
    torch.manual_seed(1)
    made = run()
    guards.ACCELERATORS = before
    torch.manual_seed(1)
    return made


def test_tables_and_rotations(calls):
    encoding, positions = Rotary(8), torch.tensor([3, 2**40])
    q, k = torch.randn(1, 4, 2, 8), torch.randn(1, 2, 2, 8)

    def run():
        table = encoding.table(positions)
        kept = encoding.table(torch.arange(9))
        return (
            table,
            encoding.encode_queries(q, table),
            *encoding.encode_both(q, k, kept, torch.tensor([8, 1])),
        )

    want = reference_of(run)
    assert not calls
    assert all(map(torch.equal, run(), want))
    assert calls == ["fill", "fill", "rotate_heads", "rotate_heads"]


def test_gradients_are_rotated_back(calls):
    encoding = Rotary(4)
    table = encoding.table(torch.arange(3), dtype=torch.float64)
    q = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    calls.clear()
    assert torch.autograd.gradcheck(lambda q: encoding.encode_queries(q, table), (q,))
    assert torch.autograd.gradgradcheck(lambda q: encoding.encode_queries(q, table), (q,))
    assert set(calls) == {"rotate_heads"}
    gradient = torch.ones((), dtype=torch.float64).expand(1, 2, 3, 4)
    (back,) = torch.autograd.grad(encoding.encode_queries(q, table), q, gradient)
    want = encoding.table(-torch.arange(3), dtype=torch.float64)
    assert torch.equal(back, encoding.encode_queries(gradient.contiguous(), want))


def test_sums_drop_the_same_elements_and_learn(calls):
    encoding = Sinusoidal(8, scale="sqrt_dim", dropout=0.4).train()
    x = torch.randn(2, 3, 8, requires_grad=True)
    gradient = torch.randn(2, 3, 8)

    def run():
        table = encoding.table(torch.arange(3))
        made = encoding.encode(x, table)
        return made, *torch.autograd.grad(made, x, gradient)

    want = reference_of(run)
    assert (want[0] == 0).any()
    assert all(map(torch.equal, run(), want))
    assert calls == ["fill", "scaled_sum", "gradient_of_x"]


def test_ids_are_looked_up_scaled_and_added_to(calls):
    embedding, ids = TokenEmbedding(11, 8, scale="sqrt_dim"), torch.tensor([[1, 10, 3]])
    table = Sinusoidal(8).table(torch.arange(3))

    def run():
        made = embedding(ids, table)
        return made, *torch.autograd.grad(made.sum(), embedding.weight)

    want = reference_of(run)
    calls.clear()
    assert all(map(torch.equal, run(), want))
    assert calls == ["scaled_sum", "gradient_of_x"]


def test_compiled_and_transformed_code_sees_torchs_own_operations(calls):
    encoding, x = Rotary(4), torch.randn(5, 2, 3, 4)
    table = encoding.table(torch.arange(3))
    calls.clear()
    torch.vmap(lambda x: encoding.encode_queries(x, table))(x)
    torch.func.jvp(lambda x: encoding.encode_queries(x, table), (x,), (x,))
    torch.compile(lambda x: encoding.encode_queries(x, table), backend="eager", fullgraph=True)(x)
    assert not calls
