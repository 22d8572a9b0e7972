"""What ranks are asked to do: attention over shards, held against attention of one process."""

import importlib

import torch
import torch.distributed as dist

from posenc import Positional, attention
from posenc.distributed import Shards

BATCH, HEADS, KV_HEADS, HEAD_DIM, LENGTH = 2, 4, 2, 8, 22
BOUNDS = {torch.float64: 1e-13, torch.float32: 3e-6}
DOCUMENTS = torch.tensor([[0] * 9 + [1] * 12 + [2], [3] * 5 + [7] * 5 + [3] * 12])
REAL = torch.tensor([[True] * 22, [False] * 3 + [True] * 4 + [False] + [True] * 12 + [False] * 2])

DESCRIBED = {
    "plain": {},
    "packed": {"document_ids": DOCUMENTS},
    "padded": {"padding_mask": REAL},
    "packed-padded": {"document_ids": DOCUMENTS, "padding_mask": REAL},
}
WITHOUT_PADDING = {"padded": "plain", "packed-padded": "packed"}
ORDERS = [{}, {"is_causal": True}, {"is_causal": True, "window": 4}]


def case_of(module: str, name: str):
    loaded = importlib.import_module(module)
    return {**loaded.CASES, **getattr(loaded, "VARIANTS", {})}[name]


def every_way(group, module: str, name: str) -> list[str]:
    """One score encoding by every way that it allows; the ways of the comparisons made."""
    case, made = case_of(module, name), []
    for number, (described, order, dtype) in enumerate(some_of(group.size(), len(name))):
        if case.lift and "window" in order:
            order = {}
        layouts = ["contiguous", "zigzag", "striped"]
        layouts += ["zigzag_by_document"] if "packed" in described else []
        layout = layouts[(number + len(name)) % len(layouts)]
        heads = case.heads if case.heads % KV_HEADS == 0 else HEADS
        grouped = (number + number // 2) % 2 or "kv_heads" in case.arguments
        kv_heads = KV_HEADS if grouped else heads  # which four ranks can divide
        given = [case.module().to(dtype)], dtype
        sizes = {"layout": layout, "heads": heads, "lift": case.lift, "kv_heads": kv_heads}
        try:
            held = Held(group, *given, described, order, **sizes)
        except ValueError:  # some encodings refuse padding
            assert "padded" in described
            held = Held(group, *given, WITHOUT_PADDING[described], order, **sizes)
        for spread in ("gather", "heads", "ring"):
            if allows(held.positional.scores[0], spread, (heads, kv_heads), group.size()):
                held.compare(spread)
                made.append(spread)
    return made


def some_of(world: int, turn: int) -> list[tuple]:
    """Every description on four ranks, half of them on two, one on one; the rest in turn."""
    dtypes, found = list(BOUNDS), list(DESCRIBED)
    start = turn + world
    taken = [found[(start + i * len(found) // world) % len(found)] for i in range(world)]
    return [
        (described, ORDERS[(start + i) % 3], dtypes[(start // 2 + i) % 2])
        for i, described in enumerate(taken)
    ]


def allows(encoding, spread: str, heads: tuple[int, int], world: int) -> bool:
    if spread == "ring":
        return encoding.is_pairwise and not encoding.reads_hidden
    divides = all(count % world == 0 for count in heads)
    return spread == "gather" or (divides and hasattr(encoding, "__getitem__")
                                  and not encoding.changes_output)  # fmt: skip


def content(dtype, heads: int = HEADS, kv_heads: int = KV_HEADS, length: int = LENGTH):
    generator = torch.Generator().manual_seed(3)
    shapes = [(heads, HEAD_DIM), (kv_heads, HEAD_DIM), (kv_heads, HEAD_DIM), (heads, HEAD_DIM)]
    return [
        torch.randn(BATCH, h, length, d, dtype=torch.float64, generator=generator).to(dtype)
        for h, d in shapes
    ]


def begun_anew(documents: torch.Tensor) -> torch.Tensor:
    """Positions from 0 on in each piece of a row with equal numbers."""
    runs = torch.arange(LENGTH)
    starts = torch.where(documents != documents.roll(1, dims=1), runs, 0)
    return runs - starts.cummax(dim=1).values


class Held:
    """Attention over shards held against attention of one process, results and gradients."""

    def __init__(
        self, group, scores, dtype, described: str, order: dict, layout: str, heads: int = HEADS,
        lift=None, queries_keys=(), kv_heads: int = KV_HEADS, **more,
    ):  # fmt: skip
        given = DESCRIBED[described]
        self.label = f"{layout}, {described}, {order}, {dtype}"
        self.group, self.dtype, self.more = group, dtype, {**order, **more}
        self.positional = Positional(queries_keys=queries_keys, scores=scores)
        widths = [e.dim for e in self.positional.scores if e.reads_hidden]
        generator = torch.Generator().manual_seed(4)
        self.hidden = [torch.randn(BATCH, LENGTH, width, dtype=dtype, generator=generator)
                       for width in widths[:1]]  # fmt: skip
        self.learning = [p for p in self.positional.parameters() if p.requires_grad]
        *whole, self.upstream = content(dtype, heads, kv_heads)
        self.whole = [t.requires_grad_() for t in whole]
        real = given.get("padding_mask", torch.ones(BATCH, LENGTH, dtype=torch.bool))
        self.seen = real[:, None, :, None]
        self.upstream = self.upstream * self.seen
        self.grid = lift(torch.arange(LENGTH)).expand(BATCH, -1, -1) if lift else None
        if "packed" in described and any(getattr(e, "reads_neighbors", False) for e in scores):
            self.grid = begun_anew(DOCUMENTS)
        self.expected = attention(
            *self.whole, positional=self.positional, q_positions=self.grid, k_positions=self.grid,
            **given, **self.more, **self._hidden(*self.hidden),
        )  # fmt: skip
        self.gradients = torch.autograd.grad(
            self.expected, [*self.whole, *self.learning], self.upstream
        )
        self.shards = Shards(group, length=LENGTH, layout=layout, **given)

    def compare(self, spread: str | None, **more) -> None:
        shards = self.shards
        part = [shards.cut(t.detach(), dim=2).requires_grad_() for t in self.whole]
        grid = None if self.grid is None else shards.cut(self.grid, dim=1)
        out = attention(*part, positional=self.positional, q_positions=grid, k_positions=grid,
                        shards=shards, spread=spread, **self.more, **more,
                        **self._hidden(*map(shards.cut, self.hidden)))  # fmt: skip
        found = torch.autograd.grad(out, [*part, *self.learning], shards.cut(self.upstream, dim=2))
        bound = BOUNDS[self.dtype]
        with torch.no_grad():
            self._near("out", shards.join(out, dim=2) * self.seen, self.expected * self.seen,
                       spread, bound)  # fmt: skip
            for name, own, g in zip("qkv", found, self.gradients, strict=False):
                self._near(f"d{name}", shards.join(own, dim=2), g, spread, bound)
            for own, g in zip(found[3:], self.gradients[3:], strict=True):
                total = own.contiguous()  # gloo reads memory as it lies
                dist.all_reduce(total, group=self.group)
                # A sum over all pairs, each with roundings of its own.
                self._near("a parameter", total, g, spread, 4 * bound)

    def _hidden(self, *hidden) -> dict:
        return {"q_hidden": hidden[0], "k_hidden": hidden[0]} if hidden else {}

    def _near(self, name: str, found, expected, spread, bound: float) -> None:
        error = float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))
        assert error < bound, f"{name} by {spread}, {self.label}: {error}"
