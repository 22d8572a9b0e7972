"""``attention`` in every backend: all that answer a question must give what is held of it."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from tests.goldens.held import numbers, settled, with_gradients
from torch import Tensor

from posenc import KERPLE, ALiBi, CoPE, Positional, Rotary, Shaw, T5Bias, attention
from posenc.positions import Coordinates

HEADS, KV_HEADS, SEQ, WIDTH, LONG = 4, 2, 9, 8, 300
REAL = torch.tensor([[False] * 2 + [True] * 7, [True] * 6 + [False] * 3])
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 5, [5] * 1 + [2] * 6 + [5] * 2])
SEEN = (numbers(SEQ, SEQ, seed=20) > -0.5) & (torch.arange(SEQ) != 4)[:, None]  # one sees nothing
SUBSET, SINKS = torch.tensor([7, 2, 5]), numbers(HEADS, seed=21)
SQUARES = torch.arange(SEQ) ** 2  # the last two are 15 apart
THIRDS = Coordinates(SQUARES, scale=Fraction(1, 3))
FINE = Coordinates([n**2 + Fraction(1, 2**70) for n in range(SEQ)])

ENCODINGS: dict[str, Callable[[], Positional]] = {
    "none": Positional,
    "rotary": lambda: Positional(queries_keys=Rotary(WIDTH)),
    "alibi": lambda: Positional(scores=ALiBi(HEADS)),
    "t5": lambda: Positional(queries_keys=Rotary(4, head_dim=WIDTH), scores=T5Bias(HEADS, 8, 20)),
    "sum": lambda: Positional(scores=ALiBi(HEADS) + KERPLE(2 * HEADS)[1 : 1 + HEADS]),
    "cope": lambda: Positional(scores=CoPE(HEADS, WIDTH, 4)),
    "shaw": lambda: Positional(scores=Shaw(HEADS, WIDTH, 3, values=True)),
}
FEATURES: dict[str, dict[str, Any]] = {
    "all": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.75},
    "padding": {"padding_mask": REAL},
    "documents": {"document_ids": DOCUMENTS, "is_causal": True},
    "seqlens": {"cu_seqlens": torch.tensor([0, 3, 4, 9])},
    "window": {"window": 3},
    "causal window": {"window": 4, "is_causal": True, "padding_mask": REAL},
    "sinks": {"sinks": SINKS, "is_causal": True},
    "capped": {"softcap": 1.5, "is_causal": True},
    "mask": {"attn_mask": SEEN},
    "added": {"attn_mask": numbers(1, HEADS, SEQ, SEQ, seed=22)},
    "positions": {"q_positions": SQUARES, "k_positions": SQUARES},
    "squares window": {"q_positions": SQUARES, "k_positions": SQUARES, "window": 15},
    "thirds": {"q_positions": THIRDS, "k_positions": THIRDS, "window": 5, "is_causal": True},
    "fine": {"q_positions": FINE, "k_positions": FINE, "window": 15},
    "subset": {"q_positions": SUBSET, "k_positions": torch.arange(SEQ), "is_causal": True},
    "last": {"is_causal": True},
    "one key head": {"is_causal": True},
    "every head": {"is_causal": True},
    "many": {
        "is_causal": True, "window": 5, "sinks": SINKS, "padding_mask": REAL,
        "document_ids": DOCUMENTS,
    },
    "long": {"is_causal": True},
    "long window": {"window": 70, "sinks": SINKS},
}  # fmt: skip
LENGTHS, KEY_HEADS = {"subset": 3, "last": 2}, {"one key head": 1, "every head": HEADS}


def asked(
    feature: str, encoding: str, backend: str | None = None, shards: Any = None, **how: Any
) -> dict[str, Tensor]:
    """One question to whole rows, or to shards that were told of padding and documents."""
    given, positional = dict(FEATURES[feature]), settled(ENCODINGS[encoding]())
    seq, kv_heads = LONG if "long" in feature else SEQ, KEY_HEADS.get(feature, KV_HEADS)
    shapes = {"q": (HEADS, LENGTHS.get(feature, seq)), "k": (kv_heads, seq), "v": (kv_heads, seq)}
    content: dict[str, Any] = {
        name: numbers(2, *shape, WIDTH, seed=i).requires_grad_()
        for i, (name, shape) in enumerate(shapes.items())
    }
    wanted = content | dict(positional.named_parameters())
    if "sinks" in given:
        wanted["sinks"] = given["sinks"] = SINKS.clone().requires_grad_()
    real = given.get("padding_mask", torch.ones(2, content["q"].shape[2], dtype=torch.bool))
    parts = list(content.values())
    if shards is not None:
        parts, how = [shards.cut(x, 2) for x in parts], how | {"shards": shards}
        given = {n: x for n, x in given.items() if n not in ("padding_mask", "document_ids")}
    with torch.no_grad() if backend == "flex" else nullcontext(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        out = attention(*parts, positional=positional, backend=backend, **given, **how)
    out = out if shards is None else shards.join(out, 2)
    made = {"out": out * real[:, None, :, None]}  # what stands at padding means nothing
    return made if backend == "flex" else with_gradients(made, wanted)


PLAIN = {"all", "causal", "scaled", "positions", "one key head", "every head", "long"}
IRREGULAR = {"mask", "added", "positions", "squares window", "thirds", "fine"}
OF_FLEX = {"all", "padding", "documents", "window", "sinks", "capped", "subset", "many"}
MEANINGLESS = {
    "cope": {"capped", "mask", "added", "many", "thirds", "fine"},
    "shaw": {"capped", "thirds", "fine"},
    "t5": {"thirds", "fine"},
}


def serves(backend: str, feature: str, encoding: str) -> bool:
    """Which questions a backend answers; flex is asked few, since it is slow before compiling."""
    if feature in MEANINGLESS.get(encoding, ()):
        return False
    if encoding in ("cope", "shaw"):
        return backend == "explicit" and "long" not in feature
    return {
        "explicit": True,
        "dense": feature != "capped",
        "strided": feature not in IRREGULAR,
        "sdpa": feature in PLAIN and encoding in ("none", "rotary"),
        "flex": feature in OF_FLEX and encoding == "t5",  # it has no backward pass on a CPU
    }[backend]


CASES = {
    f"{encoding} {feature}@{backend}": partial(asked, feature, encoding, backend)
    for encoding in ENCODINGS
    for feature in FEATURES
    for backend in ("explicit", "dense", "strided", "sdpa", "flex")
    if serves(backend, feature, encoding)
}
PARTS = frozenset(name for name in CASES if name.endswith("@flex"))
