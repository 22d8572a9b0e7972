"""What all tests share.

Nothing here loads torch before a test needs it: the process that hands tests out never does.
"""

import pytest
from hypothesis import settings
from tests.browser import axe as axe
from tests.browser import browser as browser

# A slow machine is no wrong answer.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

# One encoding of each place is traced whenever tests run. C++ is compiled for none of them: its
# compiler takes half a minute, and compiled graphs are among the random cases of every change.
REPRESENTATIVES = {"learned", "rotary", "alibi"}
TRACED = {"growing_lengths_do_not_recompile", "exports"}


@pytest.fixture(scope="session")
def oracle():
    """mpmath for every value, and Fractions for every rounding."""
    from tests.oracle import Oracle

    return Oracle()


@pytest.hookimpl(tryfirst=True)  # before any are selected by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the checks of the contract battery that compile."""
    from posenc.testing import Check

    for item in items:
        values = getattr(item, "callspec", None) and item.callspec.params.values()
        if any(isinstance(value, Check) and value.compiles for value in values or ()):
            item.add_marker(pytest.mark.compiles)
            if not is_representative(item):
                item.add_marker(pytest.mark.slow("checks of the contract that compile an encoding"))


def is_representative(item: pytest.Function) -> bool:
    return item.callspec.id in {f"{name}-{check}" for name in REPRESENTATIVES for check in TRACED}
