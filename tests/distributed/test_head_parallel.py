"""Heads cut among ranks with ``parallelize_module`` give what one process gives, and learn it."""

import pytest
import torch
from tests.distributed.cases import DOCUMENTS
from tests.distributed.encoder_cases import content
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module

from posenc import FIRE, KERPLE, ALiBi, Cyclic, Learned, Positional, Rotary, Sinusoidal, T5Bias
from posenc.distributed import Shards, own_heads
from posenc.transformer import Encoder
from posenc.transformer.head_parallel import HeadParallel

REST = pytest.mark.slow("more encodings whose heads are cut among ranks")
DIM, HEADS = 32, 8
SCORES = {
    "none": lambda: (),
    "t5": lambda: T5Bias(HEADS),
    "some": lambda: T5Bias(2 * HEADS)[4 : 4 + HEADS] + FIRE(HEADS)[:] + KERPLE(2 * HEADS)[::2],
    "sum": lambda: ALiBi(HEADS) + T5Bias(HEADS),
    "cyclic": lambda: Cyclic(HEADS, T5Bias(HEADS), period=22),
}


def mesh_of(group):
    return DeviceMesh.from_group(group, "cpu", mesh_dim_names=("tp",))


def built(scores: str) -> Encoder:
    torch.manual_seed(0)
    tokens = [Sinusoidal(DIM), Learned(DIM, 64)]
    positional = Positional(tokens, Rotary(4), SCORES[scores]())
    arguments = {"is_causal": True, "kv_heads": 4, "head_dim": 4, "window": [None, 6]}
    return Encoder(DIM, HEADS, 2, positional=positional, **arguments).double()


def encodes(group, scores: str) -> float:
    """Results, and every parameter's gradient, of one process and of heads that are cut."""
    whole, x, upstream = built(scores), content(DIM).requires_grad_(), content(DIM).roll(1, 1)
    expected, names = whole(x), dict(whole.named_parameters())
    wanted = torch.autograd.grad((expected * upstream).sum(), [x, *names.values()])
    cut = built(scores)
    if group.rank():  # the numbers of the first rank are everyone's
        for p in cut.positional.scores.parameters():
            p.data.add_(1.0)
    cut = parallelize_module(cut, mesh_of(group), HeadParallel())
    parameters = dict(cut.named_parameters())
    assert parameters.keys() == names.keys()
    out = cut(x)
    (out * upstream).sum().backward()
    found = [x.grad, *(parameters[name].grad for name in names)]
    found = [g.full_tensor() if isinstance(g, DTensor) else g for g in found]
    return max(map(far, (out, *found), (expected, *wanted)))


def far(found, expected) -> float:
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    "scores", ["t5", "some", *(pytest.param(s, marks=REST) for s in ("none", "sum", "cyclic"))]
)
def test_results_and_gradients_are_those_of_one_process(ranks, scores):
    assert max(ranks.run(2, f"{__name__}:encodes", scores=scores)) < 1e-12


def held(group) -> tuple[list, list, str]:
    """What a rank holds of some biases."""
    mesh = mesh_of(group)
    alibi, t5 = own_heads(ALiBi(HEADS), mesh), own_heads(T5Bias(HEADS), mesh)
    slopes = alibi.profile(torch.tensor([1])).flatten().tolist()
    return slopes, list(t5.weight.to_local().shape), repr(t5)


def test_a_rank_holds_what_belongs_to_its_heads(ranks):
    for rank, (slopes, shape, told) in enumerate(ranks.run(4, f"{__name__}:held")):
        # Slope h of 8 heads is 2^−(h + 1).
        assert slopes == [-(2.0 ** -(2 * rank + h)) for h in (1, 2)]
        assert shape == [32, 2]
        assert f"{2 * rank} … {2 * rank + 1} of T5Bias" in told


def beside_shards(group, spread: str) -> float:
    """Tokens cut among some ranks and heads among others."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("cp", "tp"))
    whole, x = built("t5"), content(DIM)
    expected = whole(x, document_ids=DOCUMENTS)
    shards = Shards(mesh["cp"], layout="zigzag", document_ids=DOCUMENTS)
    cut = parallelize_module(whole, mesh["tp"], HeadParallel())
    return far(shards.join(cut(shards.cut(x), shards=shards, spread=spread)), expected)


@pytest.mark.parametrize(
    "spread", ["ring", *(pytest.param(s, marks=REST) for s in ("gather", "heads"))]
)
def test_heads_and_tokens_are_cut_together(ranks, spread):
    assert max(ranks.run(4, f"{__name__}:beside_shards", spread=spread)) < 1e-12
