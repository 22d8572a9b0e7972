"""What ranks are asked to do where heads are cut among them for good."""

import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from tests.distributed.cases import DOCUMENTS, LENGTH
from tests.distributed.encoder_cases import content
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module

from posenc import (
    FIRE,
    KERPLE,
    ALiBi,
    CoPE,
    Cyclic,
    Learned,
    Positional,
    Rotary,
    Sinusoidal,
    T5Bias,
    attention,
)
from posenc.backends.strided.toeplitz import toeplitz
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


def long_rows(group) -> tuple[int | None, float]:
    """From where on far keys are known to share a number, and how far its gradient is off."""
    torch.manual_seed(0)
    bias = T5Bias(4, buckets=8, max_distance=16).double()
    content = [torch.randn(1, 4, 600, 4, dtype=torch.float64) for _ in range(4)]
    each = 4 // group.size()
    some = slice(group.rank() * each, (group.rank() + 1) * each)

    def gradient(bias, q, k, v, upstream, **options):
        out = attention(q, k, v, positional=Positional(scores=bias), **options)
        return torch.autograd.grad((out * upstream).sum(), bias.weight)[0]

    expected = gradient(bias, *content, backend="dense")
    own = own_heads(bias, mesh_of(group))
    found = gradient(own, *(t[:, some] for t in content), backend="strided")
    shared_from = toeplitz([own], 600, 600, 0).shared_from
    return shared_from, _far(found.to_local(), expected[:, some])


def saved(group) -> float:
    """torch.distributed.checkpoint writes whole biases, which one process reads."""
    folder = [tempfile.mkdtemp()] if group.rank() == 0 else [None]
    dist.broadcast_object_list(folder, group=group)
    whole = built("t5")
    expected = {n: p.clone() for n, p in whole.state_dict().items()}
    cut = parallelize_module(whole, mesh_of(group), HeadParallel())
    dcp.save(cut.state_dict(), checkpoint_id=folder[0], process_group=group)
    read = {n: torch.zeros_like(p) for n, p in expected.items()}
    dcp.load(read, checkpoint_id=folder[0], process_group=group)
    dist.barrier(group=group)
    if group.rank() == 0:
        shutil.rmtree(folder[0])
    return max(_far(read[n], p) for n, p in expected.items())


def refusals(group) -> dict[str, str]:
    mesh = mesh_of(group)

    def cut(module):
        return lambda: parallelize_module(module, mesh, HeadParallel())

    def with_scores(*scores):
        return Encoder(24, 6, 1, positional=Positional(scores=scores), is_causal=True)

    calls = {
        "cope": cut(with_scores(CoPE(6, 4, 4))),
        "key heads": cut(Encoder(24, 6, 1, kv_heads=3)),
        "bias": lambda: own_heads(ALiBi(3), mesh),
    }
    told = {}
    for name, call in calls.items():
        try:
            call()
        except (TypeError, ValueError) as error:
            told[name] = str(error)
    return told
