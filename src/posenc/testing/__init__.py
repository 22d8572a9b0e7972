"""The contract battery: checks that every encoding must pass, ours and yours.

import pytest
from posenc.testing import Case, battery

CASE = Case(MyEncoding, {"dim": 16}, changes={"base": 100.0})

@pytest.mark.parametrize("check", battery(CASE), ids=str)
def test_contract(check):
    check()
"""

from posenc.testing.battery import Check, batteries, battery
from posenc.testing.cases import Case

__all__ = ["Case", "Check", "batteries", "battery"]
