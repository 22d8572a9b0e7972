"""Rotary against transformers' own functions, against mpmath, and against its own identities."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from tests.encodings.content import random
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as apply_neox
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as apply_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as apply_llama

from posenc import MultimodalRotary, Rotary
from posenc.frequencies import FromCheckpoint, Geometric, YaRN
from posenc.positions import consecutive


def llama_tables(positions: torch.Tensor, dim: int, base: float) -> tuple[torch.Tensor, ...]:
    """cos and sin as Llama's module in transformers makes them, in float32."""
    inverse = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
    angles = positions[:, None].float() * inverse
    both = torch.cat((angles, angles), dim=-1)
    return both.cos(), both.sin()


def test_worked_by_hand():
    rotary = Rotary(4, pairing="interleaved")
    turned = rotary.encode_queries(
        torch.tensor([[[1.0, 0.0, 0.0, 1.0]]]), rotary.table(torch.tensor([1]))
    )
    # cos 1, sin 1 for the first pair; −sin 0.01, cos 0.01 for the second, which starts at b.
    want = torch.tensor([[[0.540302, 0.841471, -0.0099998, 0.99995]]])
    torch.testing.assert_close(turned, want, atol=1e-6, rtol=0)


@pytest.mark.parametrize("dim", [16, 64, 128])
def test_the_common_arithmetic_is_llama_bit_for_bit(dim):
    q, k, positions = random(2, 8, 9, dim), random(2, 2, 9, dim), consecutive(9, start=5_000)
    rotary = Rotary(Geometric(dim, 500_000.0), arithmetic="float32")
    cos, sin = llama_tables(positions, dim, 500_000.0)
    wanted = apply_llama(q, k, cos[None], sin[None])
    for got, want in zip(rotary(q, k, positions), wanted, strict=True):
        assert torch.equal(got, want)


def test_interleaved_prefix_is_gptj():
    q = random(2, 9, 4, 32)
    sin, cos = create_sinusoidal_positions(64, 16)[consecutive(9)].split(8, dim=-1)
    want = torch.cat((apply_gptj(q[..., :16], sin[None], cos[None]), q[..., 16:]), dim=-1)
    rotary = Rotary(16, head_dim=32, pairing="interleaved", heads_first=False)
    torch.testing.assert_close(
        rotary.encode_queries(q, rotary.table(consecutive(9))), want, atol=5e-6, rtol=0
    )


def test_half_prefix_is_gpt_neox():
    q, k = random(2, 4, 9, 32), random(2, 4, 9, 32, seed=1)
    rotary = Rotary(8, head_dim=32, arithmetic="float32")
    cos, sin = llama_tables(consecutive(9), 8, 10_000.0)
    wanted = apply_neox(q, k, cos[None], sin[None])
    for got, want in zip(rotary(q, k), wanted, strict=True):
        assert torch.equal(got, want)


def test_suffix_leaves_the_first_channels_alone():
    q, table = random(1, 2, 5, 12), Rotary(8).table(consecutive(5))
    got = Rotary(8, head_dim=12, rotated="suffix").encode_queries(q, table)
    assert torch.equal(got[..., :4], q[..., :4])
    assert torch.equal(got[..., 4:], Rotary(8).encode_queries(q[..., 4:].contiguous(), table))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("rotated", ["prefix", "suffix"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_out_and_in_place_write_what_is_returned(pairing, rotated, dtype):
    rotary = Rotary(8, head_dim=12, pairing=pairing, rotated=rotated)
    q, table = random(2, 4, 5, 12, dtype=dtype), rotary.table(consecutive(5))
    want = rotary.encode_queries(q, table)
    out = torch.full_like(q, float("nan"))
    assert rotary.encode_keys(q, table, out=out) is out
    assert torch.equal(out, want)
    k = q.clone()
    assert rotary.encode_queries(q, table, out=q) is q
    both = rotary.encode_both(out.copy_(k), k, table, out=(out, k))
    assert both[0] is out
    assert both[1] is k
    for each in (q, *both):
        assert torch.equal(each, want)
    held = torch.empty_like(table)
    assert rotary.table(consecutive(5), out=held) is held
    assert torch.equal(held, table)


@settings(max_examples=20, deadline=None)
@given(position=st.integers(-(2**62), 2**62), base=st.sampled_from([100.0, 1e4, 5e5]))
def test_tables_are_those_of_mpmath_at_any_position(position, base):
    table = Rotary(Geometric(16, base)).table(torch.tensor([position]))[0]
    with mp.workdps(80):
        angles = [position * mpf(base) ** (-mpf(i) / 16) for i in range(0, 16, 2)]
        for row, function in ((0, mp.cos), (1, mp.sin)):
            for got, angle in zip(table[row].tolist(), angles, strict=True):
                assert abs(got - function(angle)) <= 2**-25


def test_a_popular_float32_path_is_off_far_out_and_the_exact_value_is_this():
    """transformers multiplies in float32: at 10^7 its cosines are wrong in the first digit."""
    position, dim = 10_000_001, 128
    cos, _ = llama_tables(torch.tensor([position]), dim, 10_000.0)
    exact = Rotary(dim).table(torch.tensor([position]))[0, 0]
    with mp.workdps(60):
        truth = torch.tensor(
            [float(mp.cos(position * mpf(10_000) ** (-mpf(i) / dim))) for i in range(0, dim, 2)],
            dtype=torch.float64,
        )
    assert (exact.double() - truth).abs().max() < 2**-24
    assert (cos[0, : dim // 2].double() - truth).abs().max() > 0.1


def test_a_schedule_that_is_set_takes_full_effect():
    q, other, positions = random(1, 2, 5, 8), YaRN(Geometric(8, 100.0), 4.0, 64), consecutive(5)
    for arithmetic in ("exact", "float32", "transformers"):
        rotary, new = Rotary(8, arithmetic=arithmetic), Rotary(other, arithmetic=arithmetic)
        multimodal = MultimodalRotary(rotary, (2, 1, 1)) if arithmetic == "exact" else rotary
        multimodal(q, q, positions[:, None].expand(-1, 3) if multimodal is not rotary else None)
        rotary.frequencies = other
        assert torch.equal(rotary.table(positions), new.table(positions))
        assert torch.equal(rotary(q, q)[1], new(q, q)[1])
        assert repr(rotary) == repr(new)
        if multimodal is not rotary:
            table = multimodal.table(positions[:, None].expand(-1, 3))
            assert torch.equal(table, new.table(positions))


def test_another_schedule_leaves_all_else_as_it_is():
    layout = {"pairing": "interleaved", "rotated": "suffix", "heads_first": False}
    rotary = Rotary(4, base=100, head_dim=8, arithmetic="float32", **layout)
    assert rotary.frequencies == Geometric(4, 100)
    longer = rotary.with_frequencies(Geometric(4, 1e6))
    assert repr(longer) == repr(rotary).replace("base=100", "base=1000000.0")


def test_a_row_of_frequencies_is_a_schedule():
    row = [1.0, 0.1]
    table = Rotary(FromCheckpoint(row)).table([7, 2**40])
    for numbers in (row, tuple(row), torch.tensor(row, dtype=torch.float64)):
        assert torch.equal(Rotary(numbers).table([7, 2**40]), table)


@pytest.mark.parametrize("heads_first", [True, False])
@pytest.mark.parametrize("positions", [None, range(5, 9), torch.tensor([[3, 1, 7, 7]])])
def test_one_tensor_is_rotated_in_one_line(heads_first, positions):
    rotary = Rotary(8, heads_first=heads_first)
    x = torch.randn(2, 3, 4, 8) if heads_first else torch.randn(2, 4, 3, 8)
    assert torch.equal(rotary.encode(x, positions), rotary(x, x, positions)[1])
