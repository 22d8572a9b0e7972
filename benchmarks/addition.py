"""Applying a table that is there: x · √d + PE, with dropout as while training and without."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.formulas import TutorialModule
from benchmarks.harness import Case, copying
from posenc import Sinusoidal
from posenc.numerics.positions import plain

SHAPES = [(32, 128, 512), (8, 2048, 512), (1, 1, 512)]
QUICK = [(4, 256, 256)]


def cases(quick: bool) -> Iterator[Case]:
    """Every shape in float32 with and without dropout, and in bfloat16 without."""
    for shape in QUICK if quick else SHAPES:
        for dtype, dropout in ((torch.float32, 0.0), (torch.float32, 0.1), (torch.bfloat16, 0.0)):
            yield _case(torch.randn(shape).to(dtype), dropout)


def _case(x: Tensor, dropout: float) -> Case:
    _, length, dim = x.shape
    encoding = Sinusoidal(dim, scale="sqrt_dim", dropout=dropout).train()
    table = encoding.table(plain(length))
    narrow, scale = table.to(x.dtype), math.sqrt(dim)
    module = TutorialModule(dim, dropout).train()
    contenders = {
        "posenc, encode": lambda: encoding.encode(x, table),
        "formula": lambda: F.dropout(x * scale + narrow, dropout, training=dropout > 0),
        "tutorial module": lambda: module(x),
    }
    shape = " × ".join(map(str, x.shape))
    ending = f", dropout {dropout}" if dropout else ""
    return Case(f"add {shape}, {str(x.dtype)[6:]}{ending}", contenders, copying(x))
