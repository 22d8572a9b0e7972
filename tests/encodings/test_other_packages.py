"""Encodings against the own files of packages that nothing here depends on (``make engines``).

timm's resampling of learned grids, PoPE-pytorch, and the plain reference of PaTH in
flash-linear-attention. Numbers of code that no package has are in ``authors``.
"""

import pytest
import torch
from tests.encodings.content import random as content
from tests.numerics.arithmetic.engines import files
from torch.nn import functional as F

from posenc import LearnedGrid, PaTH, PoPE
from posenc.frequencies import Geometric

pytestmark = pytest.mark.slow("needs packages that no extra has: make engines")


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
    ours = PoPE(Geometric(2 * rotated), heads=3, head_dim=8)
    with torch.no_grad():
        ours.bias.copy_(theirs.bias)
    table = ours.table(range(11))
    made = ours.encode_queries(q, table), ours.encode_keys(k, table)
    for got, want in zip(made, wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=2e-5)


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
