"""DAPE, CABLE, RePo, GRAPE, CAPE, PoSE, LongRoPE: numbers that came out of their authors' code."""

import pytest
import torch
from tests.encodings.authors.values import CLOSE, SINGLE, eighths, fill, numbers

from posenc import (
    CABLE,
    CAPE,
    DAPE,
    FIRE,
    GRAPE,
    KERPLE,
    ALiBi,
    DAPEv2,
    PoSE,
    Positional,
    RePo,
    Rotary,
    Sinusoidal,
    StartTokenRotary,
    attention,
)
from posenc.encodings.bias import ScoreBias
from posenc.frequencies import Geometric, LongRoPE

LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


def alibi() -> ScoreBias:
    return ALiBi(2)


def kerple() -> ScoreBias:
    made = KERPLE(2)
    with torch.no_grad():
        made.p.copy_(torch.tensor([0.5, 1.25]))
        made.a.copy_(torch.tensor([0.75, 0.25]))
    return made


def fire() -> ScoreBias:
    """Theirs has a leaky ReLU where it stands within DAPE."""
    made = FIRE(2, hidden=3, threshold=2.0, c=0.25, negative_slope=0.01)
    fill(*made.expand.parameters(), *made.contract.parameters(), start=5)
    torch.nn.init.constant_(made.factor, 0.75)
    return made


def of_scores(dape: DAPE | DAPEv2) -> torch.Tensor:
    """What it makes of scores of 2 heads, 4 queries and 4 keys, of pairs that are seen."""
    fill(*dape.expand.parameters(), *dape.contract.parameters(), start=1)
    return dape.double()(eighths(1, 2, 4, 4, start=0))[0].detach()


@pytest.mark.parametrize("bias", [alibi, kerple, fire])
def test_dape(bias):
    """chuanyang-Zheng/DAPE@bde344a, DAPE.py: AliBi_DAPE, ParallelKerpleLog_DAPE and FIRE_DAPE.

    Rows of a query each, of the first head and the second.
    """
    made = of_scores(DAPE(2, bias(), hidden=3))
    within = SINGLE if bias is fire else CLOSE  # theirs takes distances in float32
    torch.testing.assert_close(made[:, LOWER].ravel(), numbers(f"dape {bias.__name__}"), **within)


def test_dape_without_a_bias():
    """The same repository's megatron/model/positional_embeddings.py: DAPEV1."""
    made = of_scores(DAPE(2, None, hidden=3))
    torch.testing.assert_close(made[:, LOWER].ravel(), numbers("dape_without_a_bias"), **CLOSE)


@pytest.mark.parametrize("bias", [alibi, kerple, fire])
def test_dape_v2(bias):
    """The same file's Alibi_DAPEV2, Kerple_DAPEV2 and FIRE_DAPEV2.

    Rows of the first three queries; the last is another there, as DAPEv2 tells.
    """
    made = of_scores(DAPEv2(2, bias(), hidden=3))[:, :3, :3][:, LOWER[:3, :3]]
    within = SINGLE if bias is fire else CLOSE
    torch.testing.assert_close(made.ravel(), numbers(f"dape_v2 {bias.__name__}"), **within)


def test_cable():
    """axiomlab/Cable@8bc6b83, src/Cable.py: CausalSelfAttention, of 4 tokens of width 4."""
    x = eighths(1, 4, 4, start=9)
    cable = CABLE(heads=2, dim=4).double()
    fill(cable.weight, cable.bias, start=2)
    q, k, v = (x @ eighths(12, 4, start=0).T + eighths(12, start=1)).split(4, dim=-1)
    q, k, v = (part.unflatten(-1, (2, 2)).transpose(1, 2) for part in (q, k, v))
    positional = Positional(scores=cable)
    y = attention(q, k, v, is_causal=True, scale=1.0, positional=positional, q_hidden=x, k_hidden=x)
    made = y.transpose(1, 2).flatten(2) @ eighths(4, 4, start=4).T + eighths(4, start=5)
    torch.testing.assert_close(made.detach().ravel(), numbers("cable"), **CLOSE)


def test_repo():
    """SakanaAI/repo@1508a73, its transformers/models/olmo2/modeling_olmo2.py.

    dynamic_position_encoding_swigluex_multihead of Olmo2Attention with dynamic_pe_pdrop=0.25,
    from_positions of Olmo2RotaryEmbedding, apply_rotary_pos_emb; products of the two by 4^−½.
    """
    repo = RePo(2, Rotary(4), dim=8, blend=0.25).double()
    assert repo.hidden == 1
    fill(repo.gate, repo.content, repo.final, start=1)
    x = eighths(1, 3, 8, start=4)
    q, k = eighths(1, 2, 3, 4, start=5), eighths(1, 2, 3, 4, start=6)
    stands = 0.75 * repo.query_features(x).mT + 0.25 * torch.arange(3)
    torch.testing.assert_close(stands.detach().ravel(), numbers("repo"), **CLOSE)
    made = repo(torch.zeros(1, 2, 3, 3).double(), q=q, k=k, q_hidden=x, k_hidden=x)
    torch.testing.assert_close(made.detach().ravel(), numbers("repo 1"), **SINGLE)


def test_grape():
    """model-architectures/GRAPE@f5b539f, model/llama-mha-grape-m-nonctx.py: MSGRAPECommuting.

    At a width of 2, with frequencies 1/2 and 2 of two heads: the plane of both channels, in which
    a = (ω, 0) and b = (0, 1). The repository has no learned plane.
    """
    grape = GRAPE(2, heads=2)
    with torch.no_grad():
        grape.generators.copy_(torch.tensor([[[0.5, 0.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]))
    q, k = (eighths(1, 4, 2, 2, start=n).transpose(1, 2).float() for n in (1, 2))
    made = torch.cat([part.detach().ravel() for part in grape(q, k)])
    torch.testing.assert_close(made.double(), numbers("grape"), **SINGLE)


@pytest.mark.parametrize("end", [0, 1])
def test_cape(monkeypatch, end):
    """gcambara/cape@d456950, cape/cape.py: CAPE1d with every draw at one end of its range.

    Its uniform_ was made to return its lower bound, then its upper; so are the draws here. Of its
    sinusoid the fourth token is kept.
    """
    from posenc.encodings.remapping import drawn

    monkeypatch.setattr(drawn, "uniform", lambda most, _: end * most)
    monkeypatch.setattr(drawn, "share", lambda shape, device, _: torch.full(shape, float(end)))
    made = CAPE(global_shift=5.0, local_shift=0.5, scale=1.03)(range(5))
    within = {"rtol": 0, "atol": 2e-6}  # theirs draws in float32, ours in steps of 2^-20
    torch.testing.assert_close(made.floats(), numbers(f"cape {end} places"), **within)
    table = Sinusoidal(8).table(made, dtype=torch.float64)
    torch.testing.assert_close(table[3], numbers(f"cape {end} table"), **within)


@pytest.mark.parametrize(
    ("end", "seq", "theirs"),
    [(0, 5, [0, 1, 2, 3, 4]), (1, 5, [0, 1, 2, 10, 11]), (1, 6, [0, 1, 2, 9, 10, 11])],
)
def test_pose(monkeypatch, end, seq, theirs):
    """dwzhu-pku/PoSE@a3d4ba8, src/train_pose.py: train_preprocess_function_pose for 12 positions.

    Its random.randint was made to return its lower bound, then its upper; so are the draws here.
    """
    from posenc.encodings.remapping import drawn

    monkeypatch.setattr(drawn, "uniform", lambda most, _: end * most)
    assert PoSE(12)(range(seq)).tolist() == theirs


def test_first_tokens_of_longrope():
    """microsoft/LongRoPE@c9e56aa, rope/longrope.py: MixedLongRoPEScaledRotaryEmbedding.

    Its _longrope_forward, and _add_original_embeddings of what that gives (its forward hands both
    tables over as one), of width 8 and base 100, from 16 to 64 positions, 3 of them as they were:
    cosines and sines of positions 2, 3 and 5.
    """
    factors = (1.0, 1.5, 2.0, 4.0)
    extended = LongRoPE(Geometric(8, 100), (1.0,) * 4, factors, 16, 4.0).at(17)
    encoding = StartTokenRotary(Rotary(extended), Rotary(8, base=100), count=3)
    made = encoding.table([2, 3, 5], dtype=torch.float64).movedim(-2, 0)
    torch.testing.assert_close(made.ravel(), numbers("first_tokens_of_longrope"), **SINGLE)
