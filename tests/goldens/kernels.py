"""Rotations and sums, whose products and sums are rounded one by one: to the bit, in every dtype.

Tables are given numbers, so that nothing but the kernels counts. Doubles are held as their bits.
"""

from functools import partial
from itertools import product
from typing import Any

import torch
from tests.goldens.held import numbers
from torch import Tensor

from posenc import Learned, Rotary, Sinusoidal
from posenc.transformer import TokenEmbedding

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SEQ, WIDTH, PAIRS, ROWS = 5, 12, 4, 9
LONG = 4096
ROW_OF = torch.tensor([[3, 0, 8, 8, 1], [7, 2, 5, 4, 6]])


def bits(made: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: x.detach().contiguous().view(torch.int64) if x.dtype == torch.float64 else x
        for name, x in made.items()
    }


def working(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def rotated(dtype: torch.dtype, pairing: Any, rotated: Any, heads_first: bool) -> dict[str, Tensor]:
    """Fresh, into places given, and in place; by rows of the tokens and by rows of a kept table."""
    rotary = Rotary(2 * PAIRS, head_dim=WIDTH, pairing=pairing, rotated=rotated,
                    heads_first=heads_first)  # fmt: skip
    table = numbers(ROWS, 2, PAIRS, seed=3, dtype=working(dtype))
    q, k = (
        numbers(2, *((h, SEQ) if heads_first else (SEQ, h)), WIDTH, seed=h, dtype=dtype)
        for h in (4, 2)
    )
    fresh = rotary.encode_both(q, k, table[:SEQ])
    by_rows = rotary.encode_both(q, k, table, ROW_OF)
    given = rotary.encode_both(q, k, table, ROW_OF, out=(torch.empty_like(q), torch.empty_like(k)))
    q_learns = q.clone().requires_grad_()
    rotary.encode_queries(q_learns, table[:SEQ]).backward(numbers(*q.shape, seed=5, dtype=dtype))
    assert q_learns.grad is not None
    made = {"q": fresh[0], "k": fresh[1], "q by rows": by_rows[0], "k by rows": by_rows[1],
            "q given": given[0], "d q": q_learns.grad}  # fmt: skip
    rotary.encode_both(q, k, table, ROW_OF, out=(q, k))
    return bits(made | {"q in place": q, "k in place": k})


def long_rotated(dtype: torch.dtype, pairing: Any) -> dict[str, Tensor]:
    """Enough tokens for several threads."""
    rotary = Rotary(64, pairing=pairing)
    table = numbers(LONG, 2, 32, seed=3, dtype=working(dtype))
    q, k = numbers(1, 6, LONG, 64, seed=1, dtype=dtype), numbers(1, 2, LONG, 64, dtype=dtype)
    fresh = rotary.encode_both(q, k, table)
    rotary.encode_both(q, k, table, torch.arange(LONG).flip(0)[None], out=(q, k))
    return bits({"q": fresh[0], "k": fresh[1], "q in place": q, "k in place": k})


def summed(
    dtype: torch.dtype, seq: int, scale: float | None, dropout: float, width: int = WIDTH
) -> dict[str, Tensor]:
    """x · scale + table, some of it dropped by a key that an integer draw gives."""
    sinusoidal = Sinusoidal(width, scale=scale, dropout=dropout).train()
    table = numbers(seq, width, seed=3, dtype=working(dtype))
    rows = torch.arange(seq).flip(0).expand(2, -1)
    x = numbers(2, seq, width, seed=1, dtype=dtype).requires_grad_()
    torch.manual_seed(11)
    out = sinusoidal.encode(x, table)
    out.backward(numbers(*x.shape, seed=5, dtype=dtype))
    assert x.grad is not None
    x, gradient = x.detach(), x.grad
    made = {"out": out, "d x": gradient, "by rows": sinusoidal.encode(x, table, rows)}
    sinusoidal.encode(x, table, rows, out=x)
    return bits(made | {"in place": x})


def looked_up(
    dtype: torch.dtype, seq: int, scale: float | None, dropout: float
) -> dict[str, Tensor]:
    """weight[id] · scale + table."""
    embedding = TokenEmbedding(50, WIDTH, scale=scale, padding_idx=0).to(dtype)
    with torch.no_grad():
        embedding.weight.copy_(numbers(50, WIDTH, seed=2))
    ids = torch.randint(50, (2, seq), generator=torch.Generator().manual_seed(4))
    table = numbers(seq, WIDTH, seed=3, dtype=working(dtype))
    rows = torch.arange(seq).flip(0).expand(2, -1)
    torch.manual_seed(12)
    made = {"alone": embedding(ids), "out": embedding(ids, table, dropout=dropout)}
    with torch.no_grad():
        made["by rows"] = embedding(ids, table, rows, dropout=dropout)
    return bits(made)


def learned(dtype: torch.dtype) -> dict[str, Tensor]:
    encoding = Learned(WIDTH, ROWS).to(dtype)
    with torch.no_grad():
        encoding.weight.copy_(numbers(ROWS, WIDTH, seed=2))
    return bits({"out": encoding(numbers(2, SEQ, WIDTH, dtype=dtype), ROW_OF)})


def named(*parts: object) -> str:
    return " ".join(str(part).removeprefix("torch.") for part in parts)


LAYOUTS = list(product(("half", "interleaved"), ("prefix", "suffix"), (True, False)))
SUMS = [*product((SEQ,), (None, 3.4641016), (0.0, 0.3)), (LONG, 3.4641016, 0.3)]
CASES = {named("rotary", d, *how): partial(rotated, d, *how) for d in DTYPES for how in LAYOUTS}
CASES |= {
    named("rotary long", d, pairing): partial(long_rotated, d, pairing)
    for d in DTYPES
    for pairing in ("half", "interleaved")
}
CASES |= {named("sum", d, *how): partial(summed, d, *how) for d in DTYPES for how in SUMS}
CASES["sum past caches"] = partial(summed, torch.float32, 2100, None, 0.0, 1024)
CASES |= {named("embedding", d, *how): partial(looked_up, d, *how) for d in DTYPES for how in SUMS}
CASES |= {named("learned", d): partial(learned, d) for d in DTYPES}
