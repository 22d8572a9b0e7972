"""What all tests share."""

import pytest
from hypothesis import settings
from tests.oracle import oracle as oracle

from posenc.testing import Check

# A slow machine is no wrong answer.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the checks of the contract battery that compile."""
    for item in items:
        values = getattr(item, "callspec", None) and item.callspec.params.values()
        if any(isinstance(value, Check) and value.compiles for value in values or ()):
            item.add_marker(pytest.mark.compiles)
