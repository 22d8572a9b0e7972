"""A bias that learns one number for all far keys: gradients of the matrix, from a band of it."""

import pytest
import torch

from posenc import KERPLE, ALiBi, Cyclic, Positional, Sandwich, T5Bias, attention
from posenc.backends.strided import gradients
from posenc.backends.strided.parts import InSegments
from posenc.backends.strided.results import merge, merged_results
from posenc.backends.strided.segments import Segment
from posenc.backends.strided.toeplitz import toeplitz

LENGTH, WIDTH = 640, 8

CASES = {
    "both sides": {},
    "order": {"is_causal": True},
    "order and a window that ends far": {"is_causal": True, "window": 300},
    "a window that ends near": {"window": 10},
}


def t5(heads, **changes) -> T5Bias:
    return T5Bias(heads, buckets=8, max_distance=16, std=0.5, dtype=torch.float64, **changes)


@pytest.fixture
def asked(monkeypatch) -> list[bool]:
    """What was answered each time, whether far keys share a number."""
    answers, ask = [], gradients.may_share

    def asked(*content) -> bool:
        answers.append(ask(*content))
        return answers[-1]

    monkeypatch.setattr(gradients, "may_share", asked)
    return answers


def learned(
    bias, kv_heads, backend, dtype=torch.float64, rounded_to=torch.float64, **options
) -> list[torch.Tensor]:
    torch.manual_seed(3)
    heads, batch = bias.heads, 2

    def drawn(*shape) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float64).to(rounded_to).to(dtype)

    q, k, v = (
        drawn(batch, each, LENGTH, WIDTH).requires_grad_() for each in (heads, kv_heads, kv_heads)
    )
    positional = Positional(scores=bias)
    out = attention(q, k, v, positional=positional, backend=backend, **options)
    grad = drawn(*out.shape)
    return [out, *torch.autograd.grad(out, (q, k, v, *bias.parameters()), grad)]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_result_and_gradients_are_those_of_the_matrix(asked, options):
    """The band, the far sides and the row sums that tie them, beside products of whole matrices."""
    bias = t5(2, bidirectional=not options.get("is_causal", False))
    got, want = (learned(bias, 1, backend, **options) for backend in ("strided", "dense"))
    assert asked == [True]
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("some", [slice(0, 2), slice(1, 4, 2)], ids=str)
def test_some_heads_are_learned_in_the_same_way(asked, some):
    """As a rank has them that computes no others; the columns of those get no gradient."""
    bias = t5(4)[some]
    got, want = (learned(bias, 1, backend, is_causal=True) for backend in ("strided", "dense"))
    assert asked == [True]
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)
    others = [head for head in range(4) if head not in range(4)[some]]
    assert not got[-1][:, others].any()


APART = 6 * LENGTH  # so that no key of one part is near


@pytest.mark.parametrize(
    ("first", "second"),
    [(0, LENGTH), (LENGTH // 2, LENGTH), (LENGTH, LENGTH), (0, APART), (APART, APART)],
)
@pytest.mark.parametrize("options", [{"is_causal": True}, {}], ids=["order", "both sides"])
def test_keys_of_two_ranks_are_learned_part_by_part(monkeypatch, first, second, options):
    """Rows of one part do not sum to zero; its keys lie far before, around or after the queries."""
    torch.manual_seed(5)
    bias, scale = t5(2), 0.3
    q, grad = torch.randn(2, 2, 2, LENGTH, WIDTH, dtype=torch.float64)
    k, v = torch.randn(2, 2, 1, 2 * LENGTH, WIDTH, dtype=torch.float64)
    keys = [(t, u) for t, u in zip(k.split(LENGTH, 2), v.split(LENGTH, 2), strict=True)]
    parts = [part_of(bias, offset, **options) for offset in (first, first - second)]
    monkeypatch.setattr(gradients, "add_gradients", None)  # which forms all scores
    with torch.no_grad():
        results = [part(q, *some, scale=scale) for part, some in zip(parts, keys, strict=True)]
        merged = merged_results(*merge(*results), grad)
        near, far = (
            part.gradients(q, *some, merged, scale=scale)
            for part, some in zip(parts, keys, strict=True)
        )
    values = [part.biases[0].values for part in parts]
    (weight,) = torch.autograd.grad(values, [bias.weight], [near[3], far[3]])
    sides = [torch.cat(both, 2) for both in zip(near[1:3], far[1:3], strict=True)]
    row = torch.arange(LENGTH)
    distance = first + row[:, None] - torch.cat((row, second + row))
    wanted = of_the_matrix(bias, (q, k, v), grad, distance, scale, **options)
    for one, other in zip((near[0] + far[0], *sides, weight), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def part_of(bias, offset, **options) -> InSegments:
    """As many queries as keys, the first of which stand ``offset`` apart."""
    segment = Segment(slice(None), slice(0, LENGTH), slice(0, LENGTH), offset)
    values = toeplitz([bias], LENGTH, LENGTH, offset, dtype=torch.float64, **options)
    return InSegments((segment,), (0,), (segment.lengths,), (values,))


def of_the_matrix(
    bias, content, grad, distance, scale, is_causal=False
) -> tuple[torch.Tensor, ...]:
    """The gradients of queries, keys, values and the weight."""
    q, k, v = (t.clone().requires_grad_() for t in content)
    scores = q @ k.mT * scale + bias.profile(distance, dtype=torch.float64)
    scores = scores.masked_fill(distance < 0, -torch.inf) if is_causal else scores
    return torch.autograd.grad((scores.softmax(-1) @ v * grad).sum(), (q, k, v, bias.weight))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shared", [True, False])
def test_beside_content_of_16_bits_a_bias_learns_in_float32(asked, dtype, shared):
    """A result rounded to 16 bits would put as much of it into what a distance receives."""
    bias = t5(2).float() if shared else KERPLE(2)
    out, *got = learned(bias, 1, "strided", dtype, dtype, is_causal=True)
    want = learned(bias.double(), 1, "dense", torch.float64, dtype, is_causal=True)[1:]
    assert asked == [shared]
    assert {x.dtype for x in (out, *got[:3])} == {dtype}
    for one, other in zip(got[3:], want[3:], strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 1e-4 * other.norm()
    for one, other in zip(got[:3], want[:3], strict=True):
        assert (one - other).norm() < torch.finfo(dtype).eps * other.norm()


def test_only_what_is_known_to_share_numbers_does():
    """A subclass may say anything of far keys, and a sum learns what its parts do."""

    class Own(T5Bias):
        pass

    def known(*biases) -> int | None:
        return toeplitz(biases, 4, 4, 0).shared_from

    near, far = t5(2).borders[-1], T5Bias(2, 16, 40).borders[-1]
    wide = T5Bias(2, buckets=16, max_distance=40)
    assert known(t5(2)) == known(t5(4)[1:3]) == near
    both = t5(2) + wide
    assert known(t5(2), wide) == known(both) == known(both[:1] + both[1:]) == far
    assert known() is None
    assert known(ALiBi(2)) is known(ALiBi(4)[:2]) is None
    for still in (ALiBi(2), ALiBi(4)[2:], Sandwich(2, dim=8)):
        assert known(t5(2), still) == known(still + t5(2)) == near
    for other in (Own(2, buckets=8, max_distance=16), KERPLE(2), Cyclic(2, t5(2), period=9)):
        for form in (other, other[:1] + other[1:], other + t5(2), (t5(2) + other)[:]):
            assert known(form) is None
            assert known(t5(2), form) is None
