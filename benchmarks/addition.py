"""Applying a table that is there: x · √d + PE, with dropout as while training, from ids too.

Contenders say where their result goes: ``out=`` memory that exists, ``in place`` over x, or
``fresh`` memory, whose first touch costs more than the sum once it is large.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.formulas import TutorialModule
from benchmarks.harness import Case, bytes_of, copying
from posenc import Sinusoidal
from posenc.positions import consecutive
from posenc.transformer import BertEmbeddings, TokenEmbedding

SHAPES = [(1, 1, 512), (32, 128, 512), (8, 2048, 512), (16, 2048, 1024)]
QUICK = [(4, 256, 256)]
KINDS = [(torch.float32, 0.0), (torch.float32, 0.1), (torch.bfloat16, 0.0), (torch.bfloat16, 0.1)]
VOCABULARY = 32_000


def cases(quick: bool) -> Iterator[Case]:
    """Every shape in float32 and bfloat16, with and without dropout; then from token ids."""
    for shape in QUICK if quick else SHAPES:
        for dtype, dropout in KINDS:
            yield summed(torch.randn(shape).to(dtype), dropout, compiled=not quick)
        yield _lookup(shape, compiled=not quick)
        yield _bert(shape, compiled=not quick)


def summed(x: Tensor, dropout: float, compiled: bool) -> Case:
    (_, length, dim), dtype = x.shape, x.dtype
    encoding = Sinusoidal(dim, scale="sqrt_dim", dropout=dropout).train()
    table, out = encoding.table(consecutive(length)), torch.empty_like(x)
    narrow, scale, inside = table.to(x.dtype), math.sqrt(dim), x.clone()
    module = TutorialModule(dim, dropout).train()

    def formula(x: Tensor) -> Tensor:
        return F.dropout(x * scale + narrow, dropout, training=dropout > 0)

    contenders: dict[str, Callable[[], object]] = {
        "posenc, out=": lambda: encoding.encode(x, table, out=out),
        "posenc, in place": lambda: encoding.encode(inside, table, out=inside),
        "posenc, fresh": lambda: encoding.encode(x, table),
        "formula, fresh": lambda: formula(x),
        "tutorial module, fresh": lambda: module(x),
    }
    if compiled:
        torch.compiler.reset()
        fast = torch.compile(formula)
        contenders["formula, compiled, fresh"] = lambda: fast(x)
    peer = None if dropout or dtype != torch.float32 else _positional_encodings(dim)
    if peer is not None:
        contenders["positional-encodings, fresh"] = lambda: peer(x)
    return Case(
        _title("add", x.shape, x.dtype, dropout),
        contenders,
        copying(x),
        copied=bytes_of(x),
        moved=bytes_of(x, table, out),
    )


def _positional_encodings(dim: int) -> Callable[[Tensor], Tensor] | None:
    """It adds without a scale, and computes its table where the length is another than before."""
    try:
        from positional_encodings.torch_encodings import PositionalEncoding1D, Summer
    except ImportError:
        return None
    return Summer(PositionalEncoding1D(dim))


def _lookup(shape: tuple[int, int, int], compiled: bool) -> Case:
    batch, length, dim = shape
    embedding = TokenEmbedding(VOCABULARY, dim, scale="sqrt_dim")
    ids, out = torch.randint(VOCABULARY, (batch, length)), torch.empty(shape)
    table, weight, scale = (
        Sinusoidal(dim).table(consecutive(length)),
        embedding.weight,
        math.sqrt(dim),
    )

    def formula(ids: Tensor) -> Tensor:
        return F.embedding(ids, weight) * scale + table

    contenders: dict[str, Callable[[], object]] = {
        "posenc, out=": lambda: embedding(ids, table, out=out),
        "posenc, fresh": lambda: embedding(ids, table),
        "formula, fresh": lambda: formula(ids),
    }
    if compiled:
        torch.compiler.reset()
        fast = torch.compile(formula)
        contenders["formula, compiled, fresh"] = lambda: fast(ids)
    return Case(
        _title("embed and add", shape, torch.float32, 0.0),
        contenders,
        copying(out),
        copied=bytes_of(out),
        moved=bytes_of(out, table, out, ids),
    )


def _bert(shape: tuple[int, int, int], compiled: bool) -> Case:
    batch, length, dim = shape
    embeddings = BertEmbeddings(dim, num_embeddings=VOCABULARY, max_len=length).eval()
    ids, types = torch.randint(VOCABULARY, (batch, length)), torch.randint(2, (batch, length))
    parts = embeddings.words, embeddings.token_types, embeddings.positions
    words, kinds, places = (part.weight for part in parts)
    norm, positions = embeddings.norm, consecutive(length)

    def formula(ids: Tensor, types: Tensor) -> Tensor:
        summed = F.embedding(ids, words) + F.embedding(types, kinds) + places[positions]
        return F.layer_norm(summed, (dim,), norm.weight, norm.bias, norm.eps)

    contenders: dict[str, Callable[[], object]] = {
        "posenc, fresh": lambda: embeddings(ids, types),
        "formula, fresh": lambda: formula(ids, types),
    }
    if compiled:
        torch.compiler.reset()
        fast = torch.compile(formula)
        contenders["formula, compiled, fresh"] = lambda: fast(ids, types)
    out = torch.empty(shape)
    return Case(
        _title("BERT embeddings", shape, torch.float32, 0.0),
        contenders,
        copying(out),
        copied=bytes_of(out),
        moved=bytes_of(out, out, ids, types),
    )


def _title(what: str, shape: tuple[int, ...], dtype: torch.dtype, dropout: float) -> str:
    ending = f", dropout {dropout}" if dropout else ""
    return f"{what} {' × '.join(map(str, shape))}, {str(dtype)[6:]}{ending}"
