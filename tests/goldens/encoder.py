"""``Encoder`` forward, backward and decoding with a cache, and its parts.

Nothing is dropped: masks of ``nn.Dropout`` are floating draws, which differ between processors.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from tests.goldens.held import numbers, settled, with_gradients
from torch import Tensor, nn

from posenc import (
    CABLE,
    ALiBi,
    CoPE,
    Learned,
    Positional,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
)
from posenc.frequencies import Geometric, YaRN
from posenc.transformer import (
    BatchNorm,
    BertEmbeddings,
    Encoder,
    FeedForward,
    KeyValueCache,
    LayerNorm,
    MultiHeadAttention,
)

DIM, HEADS, WIDTH, SEQ, PROMPT = 16, 4, 4, 9, 5
REAL = torch.tensor([[False] * 2 + [True] * 7, [True] * 9])
GIVEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"padding_mask": REAL},
    "packed": {"document_ids": torch.tensor([[0] * 4 + [1] * 5, [3] * 2 + [2] * 7])},
    "placed": {"positions": torch.tensor([[0, 1, 4, 5, 6, 9, 20, 21, 40], list(range(9))])},
}
CAUSAL: dict[str, Any] = {"is_causal": True, "norm": "pre"}
ENCODERS: dict[str, Callable[[], Encoder]] = {
    "none": lambda: Encoder(DIM, HEADS, 2),
    "sinusoidal": lambda: built(Sinusoidal(DIM, scale="sqrt_dim")),
    "bert": lambda: built(Learned(DIM, 64), embedding_norm=True, activation="gelu", eps=1e-12),
    "gpt": lambda: built(Learned(DIM, 64), activation="gelu", **CAUSAL),
    "llama": lambda: built((), Rotary(WIDTH), kv_heads=2, bias=False, **CAUSAL),
    "yarn": lambda: built((), Rotary(YaRN(Geometric(WIDTH), 4.0, 4096)), kv_heads=1, **CAUSAL),
    "t5": lambda: built((), (), T5Bias(HEADS, 8, 20), scale=1.0, norm="pre", final_norm=False),
    "alibi": lambda: built((), (), ALiBi(HEADS), **CAUSAL),
    "windows": lambda: Encoder(
        DIM, HEADS, 2, head_dim=8, inner=24, window=[3, None], is_causal=True,
        positional=[Positional(queries_keys=Rotary(8)), Positional(scores=T5Bias(HEADS))],
    ),
    "cope": lambda: built((), (), CoPE(HEADS, WIDTH, 4), **CAUSAL),
    "cable": lambda: built((), (), CABLE(HEADS, DIM), **CAUSAL),
    "shaw": lambda: built((), (), Shaw(HEADS, WIDTH, 3, values=True), **CAUSAL),
    "everywhere": lambda: built(
        [Sinusoidal(DIM), Learned(DIM, 64)], Rotary(WIDTH), (ALiBi(HEADS), T5Bias(HEADS)), **CAUSAL
    ),
}  # fmt: skip
DECODING = ("gpt", "llama", "yarn", "alibi", "windows", "cope", "cable", "shaw", "everywhere")


def built(tokens: Any, queries_keys: Any = (), scores: Any = (), **given: Any) -> Encoder:
    return Encoder(DIM, HEADS, 2, positional=Positional(tokens, queries_keys, scores), **given)


def asked(given: str, name: str, shards: Any = None, **how: Any) -> dict[str, Tensor]:
    """An encoder forward and backward, of whole rows or of shards that were told of the rest."""
    encoder, x = settled(ENCODERS[name]()), numbers(2, SEQ, DIM, seed=99).requires_grad_()
    if shards is None:
        out = encoder(x, **GIVEN[given])
    else:
        out = shards.join(encoder(shards.cut(x), shards=shards, **how))
    return with_gradients({"out": seen(out, given)}, {"x": x} | dict(encoder.named_parameters()))


def seen(out: Tensor, given: str) -> Tensor:
    """Without the rows of padding, which mean nothing."""
    return out * REAL.unsqueeze(-1) if given == "padded" else out


@torch.no_grad()
def decoded(given: str, name: str, cache: KeyValueCache | None = None) -> dict[str, Tensor]:
    """A prompt, then some tokens at a time: what one pass gives."""
    encoder, x = settled(ENCODERS[name]()), numbers(2, SEQ, DIM, seed=99)
    cache = KeyValueCache() if cache is None else cache
    parts = [
        encoder(x[:, a:b], cache=cache, **{n: each[:, a:b] for n, each in GIVEN[given].items()})
        for a, b in ((0, PROMPT), (PROMPT, 7), (7, 8), (8, SEQ))
    ]
    return {"out": seen(torch.cat(parts, 1), given)}


def cached(given: str, name: str, size: int | None) -> dict[str, Tensor]:
    return decoded(given, name, KeyValueCache(size))


@torch.no_grad()
def taken_back() -> dict[str, Tensor]:
    """Guessed tokens are forgotten, rows change places, and one becomes two."""
    encoder, x = settled(ENCODERS["everywhere"]()), numbers(2, SEQ, DIM, seed=99)
    cache = KeyValueCache()
    made = {"prompt": encoder(x[:, :6], cache=cache)}
    cache.crop(4)
    cache.reorder(torch.tensor([1, 0]))
    made["other rows"] = encoder(x[:, 4:6], cache=cache)
    cache.repeat(2)
    return made | {"twice": encoder(x[:, 6:7].repeat(2, 1, 1), cache=cache)}


def part(module: nn.Module, **given: Any) -> dict[str, Tensor]:
    settled(module)
    x = numbers(2, SEQ, DIM, seed=99).requires_grad_()
    return with_gradients({"out": module(x, **given)}, {"x": x} | dict(module.named_parameters()))


def bert() -> dict[str, Tensor]:
    embeddings = settled(BertEmbeddings(DIM, num_embeddings=20, max_len=16, padding_idx=0))
    ids = torch.tensor([[5, 7, 9, 0], [1, 2, 3, 19]])
    made = {"out": embeddings(ids), "typed": embeddings(ids, torch.tensor([[0, 0, 1, 1]]))}
    return with_gradients(made, dict(embeddings.named_parameters()))


CASES: dict[str, Callable[[], dict[str, Tensor]]] = {
    f"{name} {given}": partial(asked, given, name) for name in ENCODERS for given in GIVEN
}
CACHED = {
    f"{name} {given}@cache of {size}": partial(cached, given, name, size)
    for name in DECODING
    for given in ("plain", "padded", "placed")
    for size in (None, 12)
}
PARTS = CACHED.keys()
CASES |= CACHED | {
    "taken back": taken_back,
    "BertEmbeddings": bert,
    "BatchNorm": partial(part, BatchNorm(DIM)),
    "LayerNorm": partial(part, LayerNorm(DIM)),
    "FeedForward": partial(part, FeedForward(DIM, 24)),
    "MultiHeadAttention": partial(part, MultiHeadAttention(DIM, HEADS, kv_heads=2, window=3)),
}
