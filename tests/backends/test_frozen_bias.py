"""Gradients through a bias that does not learn: those of the matrix, in one node of autograd."""

import pytest
import torch

from posenc import KERPLE, ALiBi, Positional, T5Bias, attention

HEADS, WIDTH, LENGTH = 4, 8, 300

BIASES = {
    "steep heads and gentle ones": lambda: ALiBi(HEADS, slopes=(8.0, 1.0, 0.1, 0.001)),
    "T5": lambda: T5Bias(HEADS, std=1.0).double(),
    "KERPLE": lambda: KERPLE(HEADS).double(),
}
CASES = {
    "order": {"is_causal": True},
    "order and a window": {"is_causal": True, "window": 40},
    "no order": {},
    "documents": {"is_causal": True, "document_ids": torch.arange(LENGTH).expand(2, -1) // 290},
}


def content(q_len=LENGTH, dtype=torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (HEADS, q_len), (2, LENGTH), (2, LENGTH), (HEADS, q_len)
    return [
        torch.randn(2, heads, length, WIDTH, dtype=torch.float64, generator=generator).to(dtype)
        for heads, length in shapes
    ]


def through(bias, backend, q_len=LENGTH, dtype=torch.float64, **options) -> list[torch.Tensor]:
    *leaves, grad = content(q_len, dtype)
    leaves = [t.requires_grad_() for t in leaves]
    positional = Positional(scores=bias.requires_grad_(False))
    out = attention(*leaves, positional=positional, backend=backend, **options)
    return [out, *torch.autograd.grad(out, leaves, grad)]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)
def test_results_and_gradients_are_those_of_the_matrix(bias, options):
    bias = bias()
    got, want = (through(bias, backend, **options) for backend in ("strided", "explicit"))
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_the_last_queries_and_queries_alone():
    """Fewer queries than keys, and keys that want no gradient."""
    got, want = (through(ALiBi(HEADS), b, 270, is_causal=True) for b in ("strided", "explicit"))
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    q, k, v, grad = content()
    out = attention(q.requires_grad_(), k, v, positional=Positional(scores=ALiBi(HEADS)))
    torch.testing.assert_close(
        torch.autograd.grad(out, q, grad)[0], through(ALiBi(HEADS), "explicit")[1],
        rtol=0, atol=1e-12,
    )  # fmt: skip


def test_blocks_add_their_gradients_themselves():
    """Autograd would add up as many gradients of all keys as there are blocks."""
    q, k, v, _ = (t.requires_grad_() for t in content())
    positional = Positional(scores=ALiBi(HEADS))
    out = attention(q, k, v, positional=positional, is_causal=True, backend="strided")
    assert out.grad_fn is not None
    leaves = {node.variable for node, _ in out.grad_fn.next_functions if node is not None}  # type: ignore[attr-defined]
    assert leaves == {q, k, v}
