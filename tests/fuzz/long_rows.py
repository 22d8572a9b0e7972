"""Long rows, seldom: what learns in 16 bits or beside them, and autocast, against float64."""

from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st
from tests.fuzz.encodings import HEAD_DIM, seeded
from torch import Tensor

from posenc import KERPLE, ALiBi, Positional, Sandwich, T5Bias, attention
from posenc.backends.masks import masked_softmax

BACKENDS = (None, "strided", "dense", "explicit")

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.02, torch.float16: 0.004}
"""Of results and of gradients of content, beside their whole size."""

LEARNED = 5e-6
"""Of what learns, which is in float32, beside the sum of the sizes of its terms."""

NARROW = 2.0**-8
"""Of what learns and is of 16 bits itself, beside its own size: it is rounded once."""


@dataclass
class LongCase:
    """One call of attention with more pairs than a small matrix.

    Attributes:
        size: Standard deviation of queries and keys.
        autocast: To which dtype, if at all.
        backward_inside: Whether autocast goes on until gradients are there.
        cast: Whether the biases are cast to the dtype of content.
    """

    seed: int
    dtype: torch.dtype
    autocast: torch.dtype | None
    backward_inside: bool
    cast: bool
    kv_heads: int
    group: int
    q_len: int
    k_len: int
    value_dim: int
    size: float
    is_causal: bool
    window: int | None
    softcap: float | None
    sunk: bool
    builders: list = field(repr=False)

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.kv_heads * self.group

    def positional(self) -> Positional:
        """The biases, built anew with the same parameters."""
        made = Positional(scores=[seeded(b, self.seed + i) for i, b in enumerate(self.builders)])
        return made.to(self.dtype) if self.cast else made


def biases(heads: int) -> st.SearchStrategy:
    """Those of distance that learn, and a few that do not."""
    far_alike = [
        lambda: T5Bias(heads, 8, 16, std=1.0),
        lambda: T5Bias(heads, 6, 12, bidirectional=False, std=1.0),
        lambda: T5Bias(heads, std=1.0),
    ]
    apart = [lambda: KERPLE(heads), lambda: KERPLE(heads, "power")]
    still = [lambda: ALiBi(heads), lambda: Sandwich(heads, dim=8)]
    return st.sampled_from([*far_alike, *far_alike, *apart, *apart, *still])


@st.composite
def cases(draw) -> LongCase:
    """One call: mostly of some hundred tokens, a few times of a thousand and more."""
    kv_heads, group = draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))
    k_len = draw(st.integers(140, 400) | st.integers(560, 700) | st.integers(1000, 1200))
    less = draw(st.sampled_from([0, 0, 7, 64]))
    softcap = draw(st.sampled_from([None, None, 50.0, 2.0]))
    return LongCase(
        seed=draw(st.integers(0, 2**16)),
        dtype=draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16])),
        autocast=draw(st.sampled_from([None, None, torch.bfloat16])),
        backward_inside=draw(st.booleans()),
        cast=draw(st.sampled_from([False, False, True])),
        kv_heads=kv_heads,
        group=group,
        q_len=k_len - less,
        k_len=k_len,
        value_dim=draw(st.sampled_from([HEAD_DIM, HEAD_DIM, HEAD_DIM // 2])),
        size=draw(st.sampled_from([1.0, 2.5, 4.0])),
        is_causal=draw(st.booleans()),
        window=draw(st.sampled_from([None, None, None, 40, 300])),
        softcap=softcap,
        sunk=draw(st.sampled_from([False, False, True])),
        builders=draw(st.lists(biases(kv_heads * group), max_size=2)),
    )


def check(case: LongCase) -> None:
    """Raise where a backend differs from a matrix of scores in float64."""
    content, grad = content_of(case)
    want, content_wanted, learned_wanted, sizes = expected(case, content, grad)
    for backend in BACKENDS:
        made = _run(case, content, grad, backend)
        if made is None:
            continue
        out, of_content, learned = made
        narrow = case.dtype if case.autocast is None else case.autocast
        for name, got, meant in zip(
            ("out", "query", "key", "value"),
            (out, *of_content), (want, *content_wanted), strict=True,
        ):  # fmt: skip
            off = (got.double() - meant).norm()
            # Of a row with one weight of nearly 1 what reaches queries and keys is all rounding.
            most = TOLERANCE[narrow] * (meant.norm() + 0.05 * grad.norm())
            assert off <= most, f"{backend}: {name} is off by {off} > {most} in\n{case}"
        for got, meant, size in zip(learned, learned_wanted, sizes, strict=True):
            off, most = (got.double() - meant).norm(), LEARNED * size
            if got.dtype != torch.float32:
                most += NARROW * meant.norm()
            assert off <= most, f"{backend}: a gradient is off by {off} > {most} in\n{case}"


def content_of(case: LongCase) -> tuple[list[Tensor], Tensor]:
    """Queries, keys, values and the gradient of the result, all of few bits."""
    generator = torch.Generator().manual_seed(case.seed)
    shapes = (
        (case.heads, case.q_len, HEAD_DIM), (case.kv_heads, case.k_len, HEAD_DIM),
        (case.kv_heads, case.k_len, case.value_dim), (case.heads, case.q_len, case.value_dim),
    )  # fmt: skip
    sizes = case.size, case.size, 1.0, 1.0
    made = [
        (size * torch.randn(1, *shape, generator=generator)).bfloat16().to(case.dtype)
        for size, shape in zip(sizes, shapes, strict=True)
    ]
    return made[:3], made[3]


def expected(case: LongCase, content: list[Tensor], grad: Tensor):
    """The result, the gradients, and Σ |terms| of those of what learns."""
    positional, sinks = case.positional().double(), _sinks(case)
    query, key, value = (x.double().requires_grad_() for x in content)
    here, there = torch.arange(case.k_len - case.q_len, case.k_len), torch.arange(case.k_len)
    scores = query @ key.repeat_interleave(case.group, 1).mT * HEAD_DIM**-0.5
    if case.softcap is not None:
        scores = case.softcap * (scores / case.softcap).tanh()
    tables = [each.table(here, there, dtype=torch.float64) for each in positional.scores]  # type: ignore[operator]
    for table in tables:
        scores = scores + table
    distance = here[:, None] - there
    seen = distance >= 0 if case.is_causal else distance == distance
    if case.window is not None:
        seen = seen & (distance.abs() < case.window)
    wide = None if sinks is None else sinks.double()
    weights = masked_softmax(scores, seen, wide)[1]
    out = weights @ value.repeat_interleave(case.group, 1)
    learned = [*positional.parameters(), *([] if sinks is None else [sinks])]
    of_scores, *made = torch.autograd.grad(
        out, [scores, query, key, value, *learned], grad.double(), retain_graph=True
    )
    sizes = []
    for table in (t for t in tables if t.requires_grad):
        of_table = of_scores.abs().sum(0).to(table.dtype)
        parameters = [p for p in positional.parameters() if _reaches(table, p)]
        sizes += torch.autograd.grad(table, parameters, of_table, retain_graph=True)
    totals = [size.abs().sum() for size in sizes]
    if sinks is not None:
        totals.append(of_scores.abs().sum())
    return out.detach(), made[:3], made[3:], totals


def _reaches(table: Tensor, parameter: Tensor) -> bool:
    probe = torch.autograd.grad(table.sum(), parameter, allow_unused=True, retain_graph=True)
    return probe[0] is not None


def _sinks(case: LongCase) -> Tensor | None:
    return torch.linspace(-1, 2, case.heads).requires_grad_() if case.sunk else None


def _run(case: LongCase, content: list[Tensor], grad: Tensor, backend: str | None):
    """The result and its gradients, or ``None`` where the backend says that it cannot serve."""
    positional, sinks = case.positional(), _sinks(case)
    leaves = [x.detach().clone().requires_grad_() for x in content]
    with torch.autocast("cpu", case.autocast, enabled=case.autocast is not None):
        try:
            out = attention(
                *leaves, is_causal=case.is_causal, window=case.window, softcap=case.softcap,
                sinks=sinks, positional=positional, backend=backend,
            )  # fmt: skip
        except ValueError as refusal:
            if "cannot serve" in str(refusal):
                return None
            raise
    wanted = [*leaves, *positional.parameters(), *([] if sinks is None else [sinks])]
    # The backward pass of others is torch's, which rounds inside autocast.
    inside = case.autocast is not None and case.backward_inside and backend == "strided"
    with torch.autocast("cpu", case.autocast, enabled=inside):
        made = torch.autograd.grad(out, wanted, grad.to(out.dtype))
    return out.detach(), made[:3], made[3:]
