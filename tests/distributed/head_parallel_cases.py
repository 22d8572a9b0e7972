"""What ranks are asked to do where heads are cut among them for good."""

import torch
from tests.distributed.cases import DOCUMENTS, LENGTH
from tests.distributed.encoder_cases import content
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module

from posenc import (
    FIRE,
    KERPLE,
    ALiBi,
    Cyclic,
    Learned,
    Positional,
    Rotary,
    Sinusoidal,
    T5Bias,
)
from posenc.distributed import Shards, own_heads
from posenc.transformer import Encoder, KeyValueCache
from posenc.transformer.head_parallel import HeadParallel

DIM, HEADS = 32, 8
SCORES = {
    "none": lambda: (),
    "alibi": lambda: ALiBi(HEADS),
    "t5": lambda: T5Bias(HEADS),
    "kerple": lambda: KERPLE(HEADS, exponent=True),
    "fire": lambda: FIRE(HEADS),
    "some": lambda: T5Bias(2 * HEADS)[4 : 4 + HEADS] + FIRE(HEADS)[:] + KERPLE(2 * HEADS)[::2],
    "sum": lambda: ALiBi(HEADS) + T5Bias(HEADS),
    "cyclic": lambda: Cyclic(HEADS, T5Bias(HEADS), period=22),
}


def mesh_of(group):
    return DeviceMesh.from_group(group, "cpu", mesh_dim_names=("tp",))


def built(scores: str, **changes) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(
        tokens=[Sinusoidal(DIM), Learned(DIM, 64)],
        queries_keys=Rotary(4),
        scores=SCORES[scores](),
    )
    arguments = {"is_causal": True, "kv_heads": 4, "head_dim": 4, "window": [None, 6]} | changes
    return Encoder(DIM, HEADS, 2, positional=positional, **arguments).double()


def encodes(group, scores: str, packed: bool = False) -> list[float]:
    """Results, and every parameter's gradient, of one process and of heads that are cut."""
    given = {"document_ids": DOCUMENTS} if packed else {}
    whole, x = built(scores), content(width=DIM).requires_grad_()
    upstream = content(width=DIM).roll(1, 1)
    expected = whole(x, **given)
    names = dict(whole.named_parameters())
    wanted = torch.autograd.grad((expected * upstream).sum(), [x, *names.values()])
    if group.rank():
        torch.manual_seed(7)  # the numbers of the first rank are everyone's
        for p in whole.parameters():
            p.data.add_(1.0)
        reset = built(scores)
        reset.load_state_dict({n: p + (1.0 if "scores" in n else 0.0) for n, p in
                               reset.state_dict().items()})  # fmt: skip
    else:
        reset = built(scores)
    cut = parallelize_module(reset, mesh_of(group), HeadParallel())
    assert dict(cut.named_parameters()).keys() == names.keys()
    mine = cut.layers[0].scores[0].heads if scores != "none" else HEADS // group.size()
    assert mine == HEADS // group.size()
    found_out = cut(x, **given)
    (found_out * upstream).sum().backward()
    found = {n: p.grad for n, p in cut.named_parameters()}
    errors = [float((found_out - expected).abs().max()), _far(x.grad, wanted[0])]
    for name, gradient in zip(names, wanted[1:], strict=True):
        own = found[name]
        errors.append(_far(own.full_tensor() if isinstance(own, DTensor) else own, gradient))
    return errors


def _far(found, expected) -> float:
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))


def held(group) -> dict[str, list]:
    """What a rank holds of some biases."""
    mesh = mesh_of(group)
    alibi, t5 = own_heads(ALiBi(HEADS), mesh), own_heads(T5Bias(HEADS), mesh)
    kerple = own_heads(KERPLE(HEADS), mesh)
    return {
        "alibi": alibi.profile(torch.tensor([1])).flatten().tolist(),
        "t5": list(t5.weight.to_local().shape),
        "kerple": list(kerple.p.to_local().shape),
        "told": [repr(t5)],
    }


def decodes(group) -> float:
    """A cache holds this rank's key heads, and decoding gives what one process does."""
    with torch.no_grad():
        whole = built("t5").eval()
        x, expected = content(width=DIM), None
        expected = whole(x)
        cut = parallelize_module(whole, mesh_of(group), HeadParallel())
        cache = KeyValueCache()
        made = [cut(x[:, :9], cache=cache), *(cut(x[:, i : i + 1], cache=cache)
                                             for i in range(9, LENGTH))]  # fmt: skip
    assert cache.layers[0].keys.shape[1] == 4 // group.size()
    return float((torch.cat(made, 1) - expected).abs().max())


def beside_shards(group, spread: str) -> float:
    """Tokens cut among some ranks and heads among others."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("cp", "tp"))
    whole, x = built("t5"), content(width=DIM)
    expected = whole(x, document_ids=DOCUMENTS)
    shards = Shards(mesh["cp"], layout="zigzag", document_ids=DOCUMENTS)
    cut = parallelize_module(whole, mesh["tp"], HeadParallel())
    return _far(shards.join(cut(shards.cut(x), shards=shards, spread=spread)), expected)
