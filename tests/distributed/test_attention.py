"""Attention over shards equals attention of one process, every encoding by every way it allows."""

import importlib
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from posenc import KERPLE, Positional, attention
from posenc.distributed import Shards
from posenc.encodings.base import ScoreEncoding

CONTRACTS = Path(__file__).parents[1] / "contracts"


def score_cases() -> list[tuple[str, str]]:
    """Every score encoding that the contract battery knows."""
    found = []
    for path in sorted(CONTRACTS.glob("test_*.py")):
        module = importlib.import_module(f"tests.contracts.{path.stem}")
        cases = {**module.CASES, **getattr(module, "VARIANTS", {})}
        found += [
            (module.__name__, name)
            for name, case in cases.items()
            if isinstance(case.module(), ScoreEncoding)
        ]
    return found


QUICK = {"alibi", "t5", "shaw", "cope", "forgetting"}
REST = pytest.mark.slow("every encoding of scores over ranks")
EVERY = pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(*case, id=case[1], marks=() if case[1] in QUICK else REST)
        for case in score_cases()
    ],
)
CASES = "tests.distributed.cases:every_way"


@pytest.mark.slow("more of its kind", spares=4)
@EVERY
def test_every_score_encoding_by_every_way(ranks, module, name):
    for world in (1, 2, 4):
        made = ranks.run(world, CASES, module=module, name=name)
        assert made == [made[0]] * world
        assert made[0].count("gather") == world


def beside_bfloat16(group) -> float:
    """How far the gradient of a bias in a ring is from that of one process in float64."""
    generator, found = torch.Generator().manual_seed(1), []
    content = torch.randn(4, 1, 4, 300, 16, generator=generator).bfloat16()
    for shards in (None, Shards(group, length=300)):
        torch.manual_seed(2)  # the same bias
        bias = KERPLE(4)
        given = {"positional": Positional(scores=bias), "is_causal": True}
        parts = content.double() if shards is None else [shards.cut(x, 2) for x in content]
        if shards is not None:
            given |= {"shards": shards, "spread": "ring"}
        *qkv, weights = parts
        (attention(*qkv, **given).double() * weights.double()).sum().backward()
        found.append(torch.cat([p.grad.double().flatten() for p in bias.parameters()]))
    want, got = found
    dist.all_reduce(got, group=group)
    return float((got - want).norm() / want.norm())


def test_what_learns_in_a_ring_beside_bfloat16_has_gradients_of_float32(ranks):
    assert max(ranks.run(2, f"{__name__}:beside_bfloat16")) < 1e-4
