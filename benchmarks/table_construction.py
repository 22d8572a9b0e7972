"""Building a table: into fresh memory, which the formulas do too, and into memory that exists.

The limit is to fill as much memory with one number.
"""

from collections.abc import Iterator

import torch

from benchmarks.formulas import float32_formula, float64_formula, nested_loop
from benchmarks.harness import Case, bytes_of, copying
from posenc import Sinusoidal
from posenc.positions import consecutive

SIZES = [(512, 64), (2048, 64), (5000, 512), (65_536, 64), (131_072, 128), (524_288, 128)]
QUICK = [(512, 64), (16_384, 128)]
LONGEST_LOOP = 512


def cases(quick: bool) -> Iterator[Case]:
    """One case a size; the nested loop takes part while it is bearable."""
    for length, dim in QUICK if quick else SIZES:
        encoding = Sinusoidal(dim)
        room = encoding.table(consecutive(length))
        contenders = {
            "posenc, exact, fresh": lambda e=encoding, n=length: e.table(consecutive(n)),
            "posenc, exact, out=": lambda e=encoding, n=length, r=room: e.table(
                consecutive(n), out=r
            ),
            "fill_, fresh": lambda r=room: torch.empty_like(r).fill_(1.0),
            "fill_, out=": lambda r=room: r.fill_(1.0),
            "float32 formula, fresh": lambda n=length, d=dim: float32_formula(n, d),
            "float64 formula, fresh": lambda n=length, d=dim: float64_formula(n, d),
        }
        if length <= LONGEST_LOOP:
            contenders["nested loop, fresh"] = lambda n=length, d=dim: nested_loop(n, d)
        size = bytes_of(room)
        title = f"table {length} × {dim}"
        yield Case(title, contenders, copying(room), copied=size, moved=size)
