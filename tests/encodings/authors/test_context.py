"""DAPE, CABLE, RePo, GRAPE, CAPE and PoSE against numbers that came out of their authors' code."""

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
    attention,
)
from posenc.encodings.bias import ScoreBias

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


@pytest.mark.parametrize(
    ("bias", "theirs"),
    [
        (
            alibi,
            """-0.78125 -0.7943725586 0.20671875 -0.1807141113 0.2270111084 0.6434375 -0.1502703857
            0.2473034668 -0.8392944336 0.1521289062 -1.390625 -1.368103027 -2.085625 -2.289891357
            -2.096517944 -1.89734375 -2.294016724 -2.107410889 -1.401306152 -2.109160156""",
        ),
        (
            kerple,
            """-0.78125 -1.206443309 0.20671875 -0.7405344106 -0.1980320896 0.6434375 -0.8426032919
            -0.3824605984 -1.251365184 0.1521289062 -1.390625 -1.893486667 -2.085625 -3.109694432
            -2.608929137 -1.89734375 -3.369891445 -2.960769653 -1.926689792 -2.109160156""",
        ),
        (
            fire,
            """-0.652860791 -0.496305431 0.415854834 0.321264963 0.5400794321 0.818232959
            0.4502298006 0.7015937228 -0.5477863896 0.3728665527 -0.5356157715 -0.4730727814
            -1.254128271 -1.296114525 -1.212441035 -1.088740771 -1.248712188 -1.144147794
            -0.4931334817 -1.269929053""",
        ),
    ],
)
def test_dape(bias, theirs):
    """chuanyang-Zheng/DAPE@bde344a, DAPE.py: AliBi_DAPE, ParallelKerpleLog_DAPE and FIRE_DAPE.

    Rows of a query each, of the first head and the second.
    """
    made = of_scores(DAPE(2, bias(), hidden=3))
    within = SINGLE if bias is fire else CLOSE  # theirs takes distances in float32
    torch.testing.assert_close(made[:, LOWER].ravel(), numbers(theirs), **within)


def test_dape_without_a_bias():
    """The same repository's megatron/model/positional_embeddings.py: DAPEV1."""
    theirs = """-1.53640625 -1.2265625 0.616875 0.4373828125 0.8861132812 1.33484375 0.7066210938
        1.155351562 -1.32984375 0.5271289062 -1.9878125 -1.630859375 -1.929375 -2.117070313
        -1.647832031 -1.17859375 -1.835527344 -1.366289062 -1.74984375 -2.023222656"""
    made = of_scores(DAPE(2, None, hidden=3))
    torch.testing.assert_close(made[:, LOWER].ravel(), numbers(theirs), **CLOSE)


@pytest.mark.parametrize(
    ("bias", "theirs"),
    [
        (
            alibi,
            """1.59140625 1.697741699 1.074278564 2.102575684 3.139173584 0.08602478027
            -1.219140625 -0.825925293 -2.891092529 -1.277527466 -1.417124023 1.264363403""",
        ),
        (
            kerple,
            """1.59140625 1.408734174 1.00085624 2.700346391 2.572141736 -0.02776730596
            -1.219140625 -1.173207362 -2.419101787 -2.193588337 -1.727951016 1.672048345""",
        ),
        (
            fire,
            """1.732658594 2.172897704 1.322941557 2.306765977 3.354974511 0.8570228207
            0.07440761719 -0.1432080955 -3.031933253 -0.4850433963 -1.718265745 1.782628856""",
        ),
    ],
)
def test_dape_v2(bias, theirs):
    """The same file's Alibi_DAPEV2, Kerple_DAPEV2 and FIRE_DAPEV2.

    Rows of the first three queries; the last is another there, as DAPEv2 tells.
    """
    made = of_scores(DAPEv2(2, bias(), hidden=3))[:, :3, :3][:, LOWER[:3, :3]]
    within = SINGLE if bias is fire else CLOSE
    torch.testing.assert_close(made.ravel(), numbers(theirs), **within)


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
    theirs = """-0.162109375 -1.087890625 -2.345703125 -0.31640625 -0.2962739602 -0.3473472402
        -0.4565877982 -0.1353243158 -0.2551655842 0.01427088353 0.2936332812 -0.3824619236
        0.3673930159 -0.443228134 1.867321606 0.1921998946"""
    torch.testing.assert_close(made.detach().ravel(), numbers(theirs), **CLOSE)


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
    theirs = "0.03669302672 0.2120482561 0.4890440435 0.2201581603 0.02228953674 0.4342642613"
    torch.testing.assert_close(stands.detach().ravel(), numbers(theirs), **CLOSE)
    made = repo(torch.zeros(1, 2, 3, 3).double(), q=q, k=k, q_hidden=x, k_hidden=x)
    theirs = """0.007812507337 -0.5464189637 -0.1312220711 0.9774253381 -0.03124998573 -0.5032375328
        0.03490834954 0.6798256661 -0.1718750003 0.5156249901 -0.140437588 -0.4925480164
        0.6049535102 -0.2265625286 -0.2727403554 -0.2653396112 0.6607276064 0.6562500043"""
    torch.testing.assert_close(made.detach().ravel(), numbers(theirs), **SINGLE)


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
    theirs = """-0.625 0 -0.03961105645 0.4489498436 0.6986410096 0.3000428826 -0.9621263966
        -0.5694846958 0.625 -0.875 -0.870795548 -0.7012239844 0.5848330185 -0.4858964235
        -0.4299177229 0.1352617592
        -0.25 0.375 0.4692669809 0.5982587188 -0.5713197887 -0.9610378146 -0.561539324
        -0.9170188699 1 -0.5 0.1984479576 0.7339914106 0.05591572821 -0.4472118393 -0.1746346802
        0.6001064181"""
    torch.testing.assert_close(made.double(), numbers(theirs), **SINGLE)


@pytest.mark.parametrize(
    ("end", "theirs", "fourth"),
    [
        (
            0,
            "-5.339805752 -4.368931979 -3.398058206 -2.427184433 -1.456310660",
            """-0.655170453483 -0.755481061054 -0.240342258014 0.970688219465 -0.024269460674
            0.999705454321 -0.002427181882 0.999997054496""",
        ),
        (
            1,
            "5.664999842 6.694999814 7.724999785 8.754999757 9.784999728",
            """0.620812123219 -0.783959405972 0.767863855700 0.640613031483 0.087438193323
            0.996169942697 0.008754887309 0.999961674857""",
        ),
    ],
)
def test_cape(monkeypatch, end, theirs, fourth):
    """gcambara/cape@d456950, cape/cape.py: CAPE1d with every draw at one end of its range.

    Its uniform_ was made to return its lower bound, then its upper; so are the draws here. Of its
    sinusoid the fourth token is kept.
    """
    from posenc.encodings.remapping import cape

    monkeypatch.setattr(cape, "uniform", lambda most, _: end * most)
    monkeypatch.setattr(cape, "share", lambda shape, device, _: torch.full(shape, float(end)))
    made = CAPE(global_shift=5.0, local_shift=0.5, scale=1.03)(range(5))
    within = {"rtol": 0, "atol": 2e-6}  # theirs draws in float32, ours in steps of 2^-20
    torch.testing.assert_close(made.floats(), numbers(theirs), **within)
    table = Sinusoidal(8).table(made, dtype=torch.float64)
    torch.testing.assert_close(table[3], numbers(fourth), **within)


@pytest.mark.parametrize(
    ("end", "seq", "theirs"),
    [(0, 5, [0, 1, 2, 3, 4]), (1, 5, [0, 1, 2, 10, 11]), (1, 6, [0, 1, 2, 9, 10, 11])],
)
def test_pose(monkeypatch, end, seq, theirs):
    """dwzhu-pku/PoSE@a3d4ba8, src/train_pose.py: train_preprocess_function_pose for 12 positions.

    Its random.randint was made to return its lower bound, then its upper; so are the draws here.
    """
    from posenc.encodings.remapping import pose

    monkeypatch.setattr(pose, "uniform", lambda most, _: end * most)
    assert PoSE(12)(range(seq)).tolist() == theirs
