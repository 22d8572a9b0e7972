"""Attention over shards equals attention of one process, every encoding by every way it allows."""

import importlib
from pathlib import Path

import pytest

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


def test_what_learns_in_a_ring_beside_bfloat16_has_gradients_of_float32(ranks):
    for found in ranks.run(2, "tests.distributed.cases:learned_beside_bfloat16"):
        assert found
        assert max(found.values()) < 1e-4
