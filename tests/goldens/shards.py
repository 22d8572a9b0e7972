"""``Shards`` in every way of spreading, on processes joined by gloo: each gives what one does.

What one process makes is the first of each case; the others must agree with it.
"""

import atexit
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
from tests.distributed.ranks import Ranks
from tests.goldens import attention, encoder
from tests.goldens.held import numbers, settled, with_gradients
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module

from posenc.distributed import KeyShards, Shards
from posenc.transformer import Encoder, KeyValueCache
from posenc.transformer.head_parallel import HeadParallel

SPREADS, LAYOUTS = ("gather", "heads", "ring"), ("contiguous", "zigzag", "striped")
ENCODINGS = ("rotary", "alibi", "t5", "sum", "cope", "shaw")
FEATURES = ("all", "causal", "padding", "documents", "causal window", "sinks", "capped", "many")
REFUSED = {("heads", "cope"), ("heads", "shaw"), ("ring", "cope"), ("ring", "shaw")}


def by_heads(shared: Callable[[Encoder], Any] = lambda whole: whole) -> dict[str, Tensor]:
    """An encoder whose heads may be cut for good: each rank has all tokens and the whole result."""
    module = shared(settled(encoder.ENCODERS["everywhere"]()))
    x = numbers(2, encoder.SEQ, encoder.DIM, seed=9).requires_grad_()
    made = with_gradients({"out": module(x)}, {"x": x} | dict(module.named_parameters()))
    return {n: x.full_tensor() if isinstance(x, DTensor) else x for n, x in made.items()}


def on_rank(group: Any, name: str, asked: Any, layout: Any, **how: Any) -> dict[str, Any]:
    """What one rank makes of a case; gradients are those of all ranks together."""
    if name == "heads":
        mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=("tp",))
        made = by_heads(lambda whole: parallelize_module(whole, mesh, HeadParallel()))
    elif name == "decoding":
        keys: Any = KeyShards(group, run=2)
        made = encoder.decoded(*asked, cache=KeyValueCache(shards=keys))
    else:
        module, given = (
            (attention, attention.FEATURES) if name == "attention" else (encoder, encoder.GIVEN)
        )
        rows = {n: x for n, x in given[asked[0]].items() if n in ("padding_mask", "document_ids")}
        shards = Shards(group, length=module.SEQ, layout=layout, **rows)
        made = module.asked(*asked, shards=shards, **how)
        for part, x in made.items():
            if part != "out":  # each rank has the sum of the same whole rows
                made[part] = x.contiguous() / shards.world
                dist.all_reduce(made[part], group=group)
    return {part: x.detach().numpy() for part, x in made.items()}


@cache
def ranks() -> Ranks:
    atexit.register(close)
    return Ranks()


def close() -> None:
    """Send the processes home, if any stand by."""
    if ranks.cache_info().currsize:
        ranks().close()
        ranks.cache_clear()


def by_ranks(world: int, name: str, *asked: str, layout: str = "", **how: Any) -> dict[str, Tensor]:
    case = "tests.goldens.shards:on_rank"
    made = ranks().run(world, case, name=name, asked=asked, layout=layout, **how)
    return {part: torch.from_numpy(x) for part, x in made[0].items()}


def cases() -> Iterator[tuple[str, Callable[[], dict[str, Tensor]]]]:
    """Every question in every way that answers it; layouts take turns."""
    for turn, (encoding, feature) in enumerate(product(ENCODINGS, FEATURES)):
        if feature in attention.MEANINGLESS.get(encoding, ()):
            continue
        name = f"attention {encoding} {feature}"
        yield f"{name}@one", partial(attention.asked, feature, encoding)
        layouts = LAYOUTS
        if "document_ids" in attention.FEATURES[feature]:
            layouts = (*LAYOUTS, "zigzag_by_document")
        for at, spread in enumerate(SPREADS):
            layout = layouts[(turn + turn // len(layouts) + at) % len(layouts)]
            if (spread, encoding) not in REFUSED:
                call = partial(by_ranks, 2, "attention", feature, encoding, layout=layout)
                yield f"{name}@{spread} {layout}", partial(call, spread=spread)
    for given in ("plain", "padded", "packed"):
        yield f"encoder {given}@one", partial(encoder.asked, given, "everywhere")
        for world, spread, layout in zip(
            (2, 3, 4), ("heads", "ring", "gather"), LAYOUTS, strict=True
        ):
            call = partial(by_ranks, world, "encoder", given, "everywhere", layout=layout)
            yield f"encoder {given}@{spread} {layout} {world}", partial(call, spread=spread)
    for given in ("plain", "padded"):
        yield f"decoding {given}@one", partial(encoder.decoded, given, "everywhere")
        yield f"decoding {given}@keys of 3", partial(by_ranks, 3, "decoding", given, "everywhere")
    yield "heads@one", by_heads
    yield "heads@2", partial(by_ranks, 2, "heads")


CASES = dict(cases())
