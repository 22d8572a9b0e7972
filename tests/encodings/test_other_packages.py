"""Encodings against the own files of packages that nothing here depends on (``make engines``).

timm's resampling of learned grids, PoPE-pytorch, the plain references of PaTH and of forgetting
attention in flash-linear-attention, and NeMo's Sandwich, KERPLE and xPos. Numbers of code that no
package has are in ``authors``.
"""

from functools import cache

import pytest
import torch
from tests.numerics.arithmetic.engines import files
from torch.nn import functional as F

from posenc import KERPLE, LearnedGrid, PaTH, PoPE, Rotary, Sandwich, XPos, forgetting_bias

pytestmark = pytest.mark.slow("needs packages that no extra has: make engines")


def content(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_timm_resampling_of_a_learned_grid():
    beside = {
        "timm.layers._fx": {"register_notrace_function": lambda f: f},
        "timm.layers.helpers": {"is_exporting": lambda: False},
        "timm.layers.trace_utils": {"_assert": lambda *_: None},
    }
    (package,) = files("timm", ("timm.layers.pos_embed",), beside)
    ours = LearnedGrid(8, (6, 6), prefix=1, std=1.0)
    wanted = package.resample_abs_pos_embed(ours.weight.detach()[None], [4, 9])[0]
    made = ours.resampled((4, 9), interpolation="bicubic", antialias=True).detach()
    torch.testing.assert_close(made, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rotated", [8, 6])
def test_pope_pytorch(rotated):
    """With biases of its own, on all channels or the first of them."""

    def last(x: torch.Tensor, count: int, dim: int) -> torch.Tensor:
        return x.narrow(dim, x.shape[dim] - count, count)

    beside = {"torch_einops_utils": {"slice_right_at_dim": last}}
    (package,) = files("PoPE_pytorch", ("PoPE_pytorch.pope",), beside)
    theirs = package.PoPE(rotated, heads=3)
    with torch.no_grad():
        theirs.bias.uniform_(-6.0, 0.0, generator=torch.Generator().manual_seed(3))
    q, k = content(2, 3, 11, 8), content(2, 3, 11, 8, seed=1)
    wanted = package.apply_pope_to_qk(theirs(11), q, k)
    ours = PoPE(rotated, heads=3) if rotated == 8 else _partial(rotated)
    with torch.no_grad():
        ours.bias.copy_(theirs.bias)
    table = ours.table(range(11))
    made = ours.encode_queries(q, table), ours.encode_keys(k, table)
    for got, want in zip(made, wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=2e-5)


def _partial(rotated: int) -> PoPE:
    from posenc.frequencies import Geometric

    return PoPE(Geometric(2 * rotated), heads=3, head_dim=8)


def softmax_over(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    seq = scores.shape[-1]
    hidden = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ values


def heads_first(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2)


def test_path_of_flash_linear_attention():
    """Its plain reference, in chunks of which the sequence fills one and a part."""
    (package,) = files("fla", ("fla.ops.path_attn.naive",), {})
    heads, kv_heads, width, seq = 4, 2, 8, 21
    q, k, v = (content(2, seq, n, width, seed=i) for i, n in enumerate((heads, kv_heads, kv_heads)))
    w = F.normalize(content(2, seq, kv_heads, width, seed=4), dim=-1)
    beta = 2 * content(2, seq, kv_heads, seed=5).sigmoid()
    open_gates = torch.zeros(2, seq, heads)
    scale = width**-0.5
    wanted = package.naive_path_attn(q, k, v, w, beta, open_gates, scale, chunk_size=16)
    ours = PaTH(heads, width, dim=5, kv_heads=kv_heads)
    q, k, v = heads_first(q), heads_first(k), heads_first(v).repeat_interleave(2, dim=1)
    scores = q @ k.repeat_interleave(2, dim=1).mT * scale
    features = torch.cat([w.flatten(-2), beta], dim=-1)
    table = ours.table(range(seq), range(seq))
    made = ours.encode(scores, table, q=q, k=k, scale=scale, k_features=features)
    torch.testing.assert_close(heads_first(softmax_over(made, v)), wanted, rtol=0, atol=2e-5)


def test_forgetting_of_flash_linear_attention():
    (package,) = files("fla", ("fla.ops.forgetting_attn.naive",), {})
    q, k, v = (content(2, 13, 4, 8, seed=i) for i in range(3))
    gates = F.logsigmoid(content(2, 13, 4, seed=3))
    wanted = package.naive_forgetting_attn(q, k, v, gates)
    q, k, v = heads_first(q), heads_first(k), heads_first(v)
    made = q @ k.mT * 8**-0.5 + forgetting_bias(gates.mT)
    torch.testing.assert_close(heads_first(softmax_over(made, v)), wanted, rtol=0, atol=2e-5)


@cache
def nemo():
    """Its Sandwich, KERPLE and xPos."""
    folder = "nemo.collections.nlp.modules.common.megatron.position_embedding"
    names = ("alibi_relative", "sandwich_relative", "kerple_relative", "xpos")
    beside = {"nemo.utils.decorators": {"experimental": lambda made: made}}
    return files("nemo", tuple(f"{folder}.{name}_position_embedding" for name in names), beside)[1:]


def test_sandwich_of_nemo():
    """Its sum begins at 1, and it takes its greatest value from each, as no softmax sees."""
    package, *_ = nemo()
    theirs = package.SandwichRelativePositionEmbedding(True, 6, None, 32, max_seq_len=9)(7, 9)[0]
    ours = Sandwich(6, 32, first=1).table(range(2, 9), range(9))
    ratio = 8 * torch.arange(1, 7)[:, None, None] / 6
    torch.testing.assert_close(ours - 16 / ratio, theirs, rtol=0, atol=2e-5)


def test_kerple_of_nemo():
    """The logarithm of a power, in three numbers a head."""
    _, package, _ = nemo()
    theirs = package.KERPLERelativePositionEmbedding(False, 3, None, max_seq_len=9)
    ours = KERPLE(3, exponent=True)
    pairs = ((theirs.kerple_b, ours.p), (theirs.kerple_a, ours.a), (theirs.kerple_p, ours.r))
    with torch.no_grad():
        for seed, (number, same) in enumerate(pairs):
            assert same is not None
            number.copy_(content(3, 1, 1, seed=seed).abs().clamp(0.05, 1.9))
            same.copy_(number.flatten())
        torch.testing.assert_close(ours.table(range(9), range(9)), theirs(9, 9)[0])


def test_xpos_of_nemo():
    """It counts from the middle of a row for its scales, which products do not see."""
    *_, package = nemo()
    theirs = package.XPOSPositionEmbedding(16, scale_base=64)
    ours = XPos(Rotary(16, pairing="interleaved"), scale_base=64)
    q, k = content(2, 3, 11, 16), content(2, 3, 11, 16, seed=1)
    first, second = (x.permute(2, 0, 1, 3) for x in (q, k))  # [seq, batch, heads, width]
    wanted = torch.einsum("qbhd,kbhd->bhqk", theirs(first), theirs(second, downscale=True))
    table = ours.table(range(11))
    made = ours.encode_queries(q, table) @ ours.encode_keys(k, table).mT
    torch.testing.assert_close(made, wanted, rtol=0, atol=2e-5)
