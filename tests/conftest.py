"""What all tests share."""

import pytest
from tests.oracle import oracle as oracle

from posenc.testing import Check


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the checks of the contract battery that compile."""
    for item in items:
        values = getattr(item, "callspec", None) and item.callspec.params.values()
        if any(isinstance(value, Check) and value.compiles for value in values or ()):
            item.add_marker(pytest.mark.compiles)
