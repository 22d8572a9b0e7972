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


EVERY = pytest.mark.parametrize(
    ("module", "name"), score_cases(), ids=[name for _, name in score_cases()]
)


QUICK = {"alibi", "t5", "shaw", "cope", "fire", "kerple", "forgetting", "remapped-rotary", "path"}
REST = pytest.mark.slow("every encoding of scores over ranks")
SOME_QUICK = pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(*case, id=case[1], marks=() if case[1] in QUICK else REST)
        for case in score_cases()
    ],
)


@SOME_QUICK
def test_every_score_encoding_by_every_way(ranks, module, name):
    for world in (1, 2, 4):
        made = ranks.run(
            world, "tests.distributed.cases:every_way", module=module, name=name, thorough=False
        )
        assert min(made) >= min(world, 2)  # some refuse padding


@EVERY
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.slow("every description, order and dtype of attention over shards")
def test_every_score_encoding_thoroughly(ranks, world, module, name):
    made = ranks.run(
        world, "tests.distributed.cases:every_way", module=module, name=name, thorough=True
    )
    assert min(made) >= 12
