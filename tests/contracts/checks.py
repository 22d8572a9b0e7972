"""The contract battery as a test of each check on each case."""

from collections.abc import Callable, Mapping

import pytest

from posenc.testing import Case, batteries

MORE = pytest.mark.slow("more of its kind", spares=3)
COMPILING = pytest.mark.slow("compiles each encoding several times")


def contract(
    cases: Mapping[str, Case],
    *marks: pytest.MarkDecorator,
    compiling: bool | None = None,
    leaving: str = "none",
) -> Callable:
    """A test of all checks, of those that compile, or of the others, but for one by its end."""
    rows = [
        pytest.param(check, id=name, marks=marks)
        for name, check in batteries(cases).items()
        if compiling in (None, check.compiles) and not name.endswith(leaving)
    ]

    @pytest.mark.parametrize("check", rows)
    def test(check):
        check()

    return test
