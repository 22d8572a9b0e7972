"""Many queries at once and few at a time, joined: what the matrix of all scores gives."""

import pytest
import torch

from posenc import KERPLE, ALiBi, Positional, T5Bias, attention
from posenc.backends.strided import backend, wide_blocks
from posenc.backends.strided.toeplitz import toeplitz

HEADS, WIDTH, LENGTH = 4, 8, 150


def t5(**changes) -> T5Bias:
    return T5Bias(HEADS, buckets=4, max_distance=4, std=1.0, dtype=torch.float64, **changes)


BIASES = {
    "one number far away": t5,
    "no two numbers alike": lambda: KERPLE(HEADS).double(),
    "steep heads and gentle ones": lambda: ALiBi(HEADS, slopes=(8.0, 4.0, 0.02, 0.01)),
    "none": lambda: (),
}
CASES = {
    "order": {"is_causal": True},
    "order and a window that hides nothing": {"is_causal": True, "window": 200},
    "order and a window": {"is_causal": True, "window": 90},
    "no order": {},
    "documents": {"is_causal": True, "document_ids": torch.arange(LENGTH).expand(2, -1) // 130},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks so small that short rows have all kinds of them."""
    sizes = {"MANY_ROWS": 32, "FEWEST_ROWS": 20, "FEWEST_KEYS": 24, "ROWS": 8, "FAR": 60}
    for name, size in sizes.items():
        monkeypatch.setattr(wide_blocks, name, size)
    monkeypatch.setattr(backend, "SMALL", 0)


@pytest.fixture
def kinds(monkeypatch) -> set[str]:
    """What blocks there were."""
    met, divide = set(), wide_blocks.wide_blocks

    def divided(*given):
        for wide, narrow in divide(*given):
            kind = "narrow" if wide is None else "wide" if wide.number is None else "even"
            met.add(kind if narrow or wide is None else kind + ", alone")
            yield wide, narrow

    monkeypatch.setattr(wide_blocks, "wide_blocks", divided)
    return met


def content(q_len=LENGTH, kv_heads=2, dtype=torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (HEADS, q_len), (kv_heads, LENGTH), (kv_heads, LENGTH)
    return [
        torch.randn(2, heads, length, WIDTH, dtype=torch.float64, generator=generator).to(dtype)
        for heads, length in shapes
    ]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)
def test_results_are_those_of_the_matrix(bias, options):
    positional = Positional(scores=bias())
    got, want = (
        attention(*content(), positional=positional, backend=backend, **options).detach()
        for backend in ("strided", "explicit")
    )
    torch.testing.assert_close(got, want, rtol=0, atol=1e-13)


@pytest.mark.parametrize("q_len", [20, 70, 150])
def test_the_last_queries_of_a_row_see_what_they_do_in_it(kinds, q_len):
    with torch.no_grad():
        q, k, v = content(q_len)
        for bias in (t5(), KERPLE(HEADS).double()):
            given = {"positional": Positional(scores=bias), "is_causal": True}
            got, want = (attention(q, k, v, backend=b, **given) for b in ("strided", "explicit"))
            torch.testing.assert_close(got, want, rtol=0, atol=1e-13)
    assert {"even", "wide"} <= kinds


def test_each_kind_of_block_is_taken_where_it_serves(kinds):
    def taken(bias, **options) -> set[str]:
        kinds.clear()
        attention(*content(), positional=Positional(scores=bias), backend="strided", **options)
        return set(kinds)

    frozen, kerple = t5().requires_grad_(False), KERPLE(HEADS).double().requires_grad_(False)
    assert taken(frozen, is_causal=True) == {"narrow", "even"}
    assert taken(kerple, is_causal=True) == {"narrow", "wide"}
    assert taken(kerple) == {"wide, alone"}
    assert taken((), is_causal=True) == {"narrow", "even"}
    # A window cuts the first keys off for some of the queries.
    assert taken(frozen, is_causal=True, window=20) == {"narrow"}


def test_keys_far_before_all_queries_need_no_narrow_block(kinds):
    """As those of another rank, or of a part of the row that was gathered."""
    q, k, v = content(40)
    bias, offset = t5(), 400
    values = toeplitz([bias], 40, LENGTH, offset, is_causal=True, dtype=torch.float64)
    with torch.no_grad():
        got = wide_blocks.attend(q, k, v, values, offset, scale=0.3)
        mask = bias.profile(torch.tensor([99])).view(1, HEADS, 1, 1)
        k, v = (t.repeat_interleave(2, 1) for t in (k, v))
        want = (q @ k.mT * 0.3 + mask).softmax(-1) @ v
    assert kinds == {"even, alone", "narrow"}  # the last 8 queries are too few
    torch.testing.assert_close(got, want, rtol=0, atol=1e-13)
