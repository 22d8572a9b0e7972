"""Every public encoding, by the arguments that the contract battery builds it with."""

from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from tests.goldens.held import numbers, settled, with_gradients
from torch import Tensor, nn

from posenc import (
    CAPE,
    SHAPE,
    CyclicOffset,
    DualChunk,
    Graph,
    LaplacianEncoding,
    PoSE,
    QueryKeyEncoding,
    Randomized,
    RandomWalkEncoding,
    ReRoPE,
    Rotary,
    SelfExtend,
    TokenEncoding,
    forgetting_bias,
    move_keys,
    rerotate,
)
from posenc.frequencies import Geometric, Linear
from posenc.positions import Coordinates, in_float64
from posenc.testing import Case

SEQ = 6
NEAR = torch.arange(11)
FAR = torch.tensor([0, 1, 2, 3, 1000, 2**20 + 7, 2**40 + 3, 2**56 - 1, -1, -77, -(2**40)])
FARTHEST = {"AxialSinusoidal detr": 2**38, "RemappedRotary remapped-rotary-leaky": 2**53}
IN_WINDOWS = {"DecomposedRelative", "SwinBias", "SwinV2Bias"}
CONTRACTS = sorted((Path(__file__).parents[1] / "contracts").glob("test_*.py"))


@cache
def battery() -> dict[str, Case]:
    """All cases of the battery by name."""
    found: dict[str, Case] = {}
    for path in CONTRACTS:
        module = import_module(f"tests.contracts.{path.stem}")
        for given in vars(module).values():
            if isinstance(given, dict):
                found |= {
                    f"{case.build.__name__} {name}": case
                    for name, case in given.items()
                    if isinstance(case, Case)
                }
    return found


def driven(
    module: Any, where: Tensor | Coordinates, heads: int = 4, kv_heads: int = 2, head_dim: int = 8
) -> dict[str, Tensor]:
    """What an encoding makes of content at ``where``, by all of its methods, and the gradients."""
    axis = -2 if where.ndim > 1 else -1
    content, run = {
        TokenEncoding: on_tokens,
        QueryKeyEncoding: on_queries_keys,
    }.get(place(module), on_scores)(module, where.shape[axis], heads, kv_heads, head_dim)
    for x in content.values():
        x.requires_grad_()
    made = run(module, where, **content)
    return with_gradients(made, content | dict(module.named_parameters()))


def place(module: nn.Module) -> type:
    return next(
        kind for kind in (TokenEncoding, QueryKeyEncoding, nn.Module) if isinstance(module, kind)
    )


def on_tokens(module: Any, seq: int, *_: int):
    return {"x": numbers(2, seq, module.dim, seed=1)}, lambda m, p, x: {"out": m(x, p)}


def on_queries_keys(module: Any, seq: int, heads: int, kv_heads: int, _: int):
    def shape(count: int) -> tuple[int, ...]:
        axes = (count, seq) if module.heads_first else (seq, count)
        return (2, *axes, module.head_dim)

    def run(m: Any, p: Any, q: Tensor, k: Tensor) -> dict[str, Tensor]:
        table = m.table(p, dtype=torch.float64)
        made = dict(zip("qk", m(q, k, p), strict=True))
        made |= {"queries": m.encode_queries(q, table), "keys": m.encode_keys(k, table)}
        made |= {"values": m.encode_values(k, table)} if m.changes_values else {}
        return made | ({"output": m.encode_output(q, table)} if m.changes_output else {})

    content = {"q": numbers(*shape(heads), seed=1), "k": numbers(*shape(kv_heads), seed=2)}
    return content, run


def on_scores(module: Any, seq: int, heads: int, kv_heads: int, head_dim: int):
    content = {
        "scores": numbers(2, heads, seq, seq, seed=1),
        "q": numbers(2, heads, seq, head_dim, seed=2),
        "k": numbers(2, kv_heads, seq, head_dim, seed=3),
    }
    if module.reads_hidden:
        content["hidden"] = numbers(2, seq, module.dim, seed=4)

    def run(m: Any, p: Any, scores: Tensor, q: Tensor, k: Tensor, hidden=None) -> dict[str, Tensor]:
        read = {} if hidden is None else {"q_hidden": hidden, "k_hidden": hidden}
        made = {"out": m(scores, p, p, q=q, k=k, **read)}
        if m.changes_output:
            table = m.table(p, p, dtype=torch.float64)
            weights = scores.tril().softmax(-1)
            made["output"] = m.encode_output(q, weights, table)
        return made

    return content, run


def rounded(case: Case) -> bool:
    """Whether its tables are correctly rounded, and held to the bit."""
    return case.bitwise and not list(case.module().parameters())


def reached(name: str, case: Case) -> Tensor:
    """Positions that the encoding has, near and as far as it goes."""
    most = FARTHEST.get(name, 2**56)
    near = (case.limit and case.limit <= 2**18) or case.build.__name__ in IN_WINDOWS
    where = NEAR if near else FAR.clamp(-most, most)
    return where if case.lift is None else case.lift(where)


def of_battery(name: str, case: Case) -> dict[str, Tensor]:
    module: Any = settled(case.module())
    where = torch.arange(SEQ) if case.lift is None else case.lift(torch.arange(SEQ))
    made = driven(module, where, case.heads, case.kv_heads, case.head_dim)
    if rounded(case):
        return made
    far = reached(name, case)
    places = (far,) if isinstance(module, TokenEncoding | QueryKeyEncoding) else (far, far)
    return made | {"table": module.table(*places, dtype=torch.float64).double()}


def remapped(remapping: Any) -> dict[str, Tensor]:
    """Uniform draws are the generator's own bits, and so the same on every processor."""
    drawn = remapping(torch.arange(9), generator=torch.Generator().manual_seed(1))
    return {"out": in_float64(drawn)}


def distances(remapping: Any) -> dict[str, Tensor]:
    return {"out": remapping.distance(range(40), range(40)).double()}


def of_graph(encoding: Any) -> dict[str, Tensor]:
    graph = Graph(torch.tensor([[0, 1, 2, 3, 3, 5], [1, 2, 3, 0, 4, 6]])).undirected()
    return {"out": encoding.table(graph, dtype=torch.float64)}


def moved(function: Any, *arguments: Any) -> dict[str, Tensor]:
    k = numbers(1, 2, 3, 8).requires_grad_()
    return with_gradients({"out": function(k, torch.tensor([7, 100, 2**40]), *arguments)}, {"k": k})


def forgotten() -> dict[str, Tensor]:
    gates = (-numbers(2, 3, 5).abs()).requires_grad_()
    return with_gradients({"out": forgetting_bias(gates)}, {"gates": gates})


REMAPPINGS = {
    "CAPE": CAPE(), "SHAPE": SHAPE(100), "PoSE": PoSE(50), "PoSE of 3": PoSE(50, chunks=3),
    "Randomized": Randomized(64),
}  # fmt: skip
PAIRS = {
    "CyclicOffset": CyclicOffset(6), "DualChunk": DualChunk(chunk=9, local=4),
    "ReRoPE": ReRoPE(4), "ReRoPE leaky": ReRoPE(4, leak=2),
    "SelfExtend": SelfExtend(group=3, window=5),
    "SelfExtend unfloored": SelfExtend(group=3, window=5, floored=False),
}  # fmt: skip
GRAPHS = {
    "Laplacian": LaplacianEncoding(3), "Laplacian rw": LaplacianEncoding(3, normalization="rw"),
    "Laplacian none": LaplacianEncoding(3, normalization="none"),
    "RandomWalk": RandomWalkEncoding(5),
}  # fmt: skip
KINDS = ((remapped, REMAPPINGS), (distances, PAIRS), (of_graph, GRAPHS))
CASES = {name: partial(of_battery, name, case) for name, case in battery().items()}
CASES |= {name: partial(run, each) for run, kind in KINDS for name, each in kind.items()} | {
    "move_keys": partial(moved, move_keys, torch.tensor([0, 1, 2]), Rotary(8)),
    "rerotate": partial(moved, rerotate, Rotary(8), Rotary(Linear(Geometric(8), factor=2.0))),
    "forgetting_bias": forgotten,
}
