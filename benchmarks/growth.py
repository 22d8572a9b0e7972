"""How cost grows with length: tables to four million rows, attention to 32768 tokens.

A table's time a row should stay the same, and so should what a bias costs over attention without
one. ``--plot`` draws both.
"""

from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

from benchmarks import memory
from benchmarks.formulas import float32_formula, float64_formula
from benchmarks.harness import Case, bytes_of, copying
from posenc import KERPLE, ALiBi, Positional, RelativeBias, Sandwich, Sinusoidal, T5Bias, attention
from posenc.positions import consecutive

WIDTH, HEADS = 64, 8
ROWS, QUICK_ROWS = [512 * 4**i for i in range(7)] + [2**22], [512, 8192]
LENGTHS, QUICK_LENGTHS = [512 * 2**i for i in range(7)], [512, 1024]
LONGEST_DENSE = 4096
"""A matrix for every head takes 0.5 GB there, and four times that at twice the length."""

FEW_ROUNDS = {2**20: 3, 2**21: 3, 2**22: 3, 8192: 3, 16_384: 1, 32_768: 1}


def cases(quick: bool) -> Iterator[Case]:
    """Tables, then attention with each bias of distance."""
    for rows in QUICK_ROWS if quick else ROWS:
        if _fits(5 * 4 * rows * WIDTH, f"a table of {rows} rows"):
            yield _table(rows)
    for length in QUICK_LENGTHS if quick else LENGTHS:
        yield _attention(length)


def _table(rows: int) -> Case:
    encoding = Sinusoidal(WIDTH)
    room = encoding.table(consecutive(rows))
    contenders: dict[str, Callable[[], object]] = {
        "posenc, exact, out=": lambda: encoding.table(consecutive(rows), out=room),
        "posenc, exact, fresh": lambda: encoding.table(consecutive(rows)),
        "float32 formula, fresh": lambda: float32_formula(rows, WIDTH),
        "float64 formula, fresh": lambda: float64_formula(rows, WIDTH),
    }
    size = bytes_of(room)
    return Case(
        f"growth: table {rows} × {WIDTH}",
        contenders,
        copying(room),
        copied=size,
        moved=size,
        family=f"table of width {WIDTH}",
        size=rows,
        most_rounds=FEW_ROUNDS.get(rows),
    )


def _attention(length: int) -> Case:
    q, k, v = (torch.randn(1, HEADS, length, WIDTH) for _ in range(3))
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    biases: dict[str, RelativeBias] = {
        "ALiBi": ALiBi(HEADS),
        "T5": T5Bias(HEADS, bidirectional=False),
        "KERPLE log": KERPLE(HEADS),
        "KERPLE power": KERPLE(HEADS, kernel="power"),
        "Sandwich": Sandwich(HEADS),
    }
    contenders: dict[str, Callable[[], object]] = {}
    for name, bias in biases.items():
        positional = Positional(scores=bias.requires_grad_(False))
        contenders[f"posenc, {name}"] = lambda p=positional: attention(
            q, k, v, positional=p, is_causal=True
        )
    if length <= LONGEST_DENSE:
        contenders["dense ALiBi, rebuilt"] = lambda: F.scaled_dot_product_attention(
            q,
            k,
            v,
            biases["ALiBi"].table(*[consecutive(length)] * 2).masked_fill(hidden, -torch.inf),
        )
    return Case(
        f"growth: attention {HEADS} × {length} × {WIDTH}, causal",
        contenders,
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        against="no bias",
        family="causal attention",
        size=length,
        most_rounds=FEW_ROUNDS.get(length),
    )


def _fits(size: int, what: str) -> bool:
    free = memory.available()
    if free is None or size < free // 2:
        return True
    print(f"\nleft out: {what}, for want of memory")
    return False
