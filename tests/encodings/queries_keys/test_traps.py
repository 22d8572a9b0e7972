"""Mistakes that are out there, each beside the exact value."""

import torch
from mpmath import mp, mpf
from rotary_embedding_torch import RotaryEmbedding
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc import Rotary
from posenc.frequencies import Geometric, LongRoPE, YaRN
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


def test_positions_in_the_dtype_of_activations():
    """In bfloat16, 256 and 257 are one number; the table takes integers alone, and keeps both."""
    near = torch.tensor([256, 257])
    assert near.bfloat16().unique().numel() == 1
    for start in (256, 10**6, 2**24, 2**40):
        table = Rotary(128).table(consecutive(16, start=start)).flatten(1)
        assert len(table.unique(dim=0)) == 16


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


def test_two_bases_do_not_share_a_cache():
    """Some libraries keep one table for all; here used and fresh encodings stay apart."""
    positions = consecutive(50)
    small, large = Rotary(Geometric(32, 1e4)), Rotary(Geometric(32, 1e6))
    before = small.table(positions)
    large.table(positions)
    assert torch.equal(small.table(positions), before)
    assert not torch.equal(large.table(positions), before)


def test_angles_kept_in_float64_after_float32_frequencies_are_no_better():
    """The error is in the frequency: double angles of float32 frequencies miss by 10^-2 at 10^6."""
    positions = torch.tensor([999_983])
    rounded = Geometric(128).float32("float32").double()
    halfway = (positions[:, None].double() * rounded).cos()
    assert (halfway - truth(positions)).abs().max() > 5e-3
    ours = Rotary(128).table(positions)[:, 0].double()
    assert (ours - truth(positions)).abs().max() < 2**-24


def test_a_long_row_does_not_change_a_short_one():
    """Each length has a schedule of its own; what shares a table is the caller's choice."""
    longrope = LongRoPE(Geometric(8), (1.0,) * 4, (4.0,) * 4, 128, factor=4.0)
    short = Rotary(longrope.at(100))
    before = short.table(consecutive(100))
    Rotary(longrope.at(500)).table(consecutive(500))
    both = short.table(torch.stack((consecutive(100), consecutive(100, start=400))))
    assert torch.equal(both[0], before)
    assert torch.equal(short.table(consecutive(100)), before)


def test_yarn_and_linear_with_factor_one_are_plain_bit_for_bit():
    positions = consecutive(20, start=10**9)
    plain_table = Rotary(64).table(positions)
    assert torch.equal(Rotary(YaRN(Geometric(64), 1.0, 4096)).table(positions), plain_table)
