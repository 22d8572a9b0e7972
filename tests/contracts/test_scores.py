"""The contract battery on every encoding of the scores place."""

import pytest

from posenc import ALiBi
from posenc.testing import Case, batteries

CASES = {
    # With a power of two both kinds of slopes are the same; the argument shows with 6 heads.
    "alibi": Case(ALiBi, {"heads": 4, "slopes": "authors"}, {"causal": True}),
    "alibi-6": Case(ALiBi, {"heads": 6}, {"causal": True, "slopes": "geometric"}, heads=6),
}


CHECKS = batteries(CASES)


@pytest.mark.parametrize("check", list(CHECKS.values()), ids=list(CHECKS))
def test_contract(check):
    check()
