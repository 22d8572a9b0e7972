"""A pytest plugin: a test marked ``posenc`` gives a thing, and passes if nothing is wrong with it.

Load it by one line in conftest.py, ``pytest_plugins = ["posenc.audit.plugin"]``::

    @pytest.mark.posenc(length=4096, strict=True)
    def test_positions():
        return MyRotary(64)
"""

import inspect
from typing import Any

import pytest

from posenc.audit.check import check
from posenc.audit.report import CannotCheckError

MARK = "posenc(**options): what the test returns must pass posenc.audit.check with these options"


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the mark."""
    config.addinivalue_line("markers", MARK)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Check what a marked test returns."""
    mark = pyfuncitem.get_closest_marker("posenc")
    if mark is None:
        return None
    if mark.args:
        pytest.fail(
            f"posenc is marked with {', '.join(map(repr, mark.args))}, and nothing reads what has "
            "no name. Write its options by name, as posenc(length=4096).",
            False,
        )
    names = inspect.signature(pyfuncitem.obj).parameters
    thing = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    _pass(pyfuncitem.name, thing, dict(mark.kwargs))
    return True


def _pass(name: str, thing: Any, options: dict[str, Any]) -> None:
    if thing is None:
        pytest.fail("the test returned nothing; it must return what is to be checked", False)
    try:
        report = check(thing, **{"name": name, **options})
    except CannotCheckError as reason:
        pytest.fail(f"could not check {name}: {reason}", False)
    if not report.ok:
        pytest.fail(str(report), False)
