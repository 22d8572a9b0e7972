"""Mistakes that are out there, each beside the exact value."""

import torch
from mpmath import mp, mpf
from rotary_embedding_torch import RotaryEmbedding
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc import Rotary
from posenc.positions import consecutive


def truth(positions: torch.Tensor, dim: int = 128, base: float = 1e4) -> torch.Tensor:
    """cos of position × frequency by mpmath, ``[seq, pairs]``."""
    with mp.workdps(60):
        frequencies = [mpf(base) ** (-mpf(i) / dim) for i in range(0, dim, 2)]
        rows = [[float(mp.cos(p * w)) for w in frequencies] for p in positions.tolist()]
    return torch.tensor(rows, dtype=torch.float64)


def llama() -> LlamaRotaryEmbedding:
    return LlamaRotaryEmbedding(
        LlamaConfig(
            hidden_size=256,
            num_attention_heads=2,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        )
    )


def test_a_module_cast_to_bfloat16_and_back():
    """transformers' buffer of frequencies loses 16 bits in the cast; ours owns none."""
    positions = torch.tensor([100, 1000, 10_000])
    cast = llama().bfloat16().float()
    theirs = cast(torch.zeros(1), positions[None])[0][0, :, :64]
    assert (theirs.double() - truth(positions)).abs().max() > 0.5
    ours = Rotary(128).bfloat16().float().table(positions)[:, 0]
    assert (ours.double() - truth(positions)).abs().max() < 2**-24


def test_a_public_package_rotates_bfloat16_queries_by_rounded_angles():
    """rotary-embedding-torch counts positions in the dtype of the queries."""
    q = torch.ones(1, 1, 600, 128, dtype=torch.bfloat16)
    theirs = RotaryEmbedding(128, cache_if_possible=False).rotate_queries_or_keys(q).double()
    cos = truth(consecutive(600))
    sin = (1 - cos.square()).clamp(min=0).sqrt()
    # A pair (1, 1) becomes (cos − sin, cos + sin), of length √2 and known up to the sign of sin.
    want = torch.stack((cos - sin, cos + sin)).abs(), torch.stack((cos + sin, cos - sin)).abs()

    def error(turned: torch.Tensor) -> float:
        got = torch.stack((turned[0, 0, :, 0::2], turned[0, 0, :, 1::2])).abs()
        return torch.minimum((got - want[0]).abs(), (got - want[1]).abs()).max().item()

    rotary = Rotary(128, pairing="interleaved")
    ours = rotary.encode_queries(q, rotary.table(consecutive(600))).double()
    assert error(ours) < 2**-8
    assert error(theirs) > 0.5
