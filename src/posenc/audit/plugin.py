"""A pytest plugin: a test marked ``posenc`` gives a thing, and passes if nothing is wrong with it.

Load it by one line in conftest.py, ``pytest_plugins = ["posenc.audit.plugin"]``::

    @pytest.mark.posenc(length=4096, strict=True)
    def test_positions():
        return MyRotary(64)
"""

import inspect

import pytest

from posenc.audit.check import check
from posenc.audit.report import CannotCheckError


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the mark."""
    told = "posenc(**options): what the test returns must pass check with these options"
    config.addinivalue_line("markers", told)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Check what a marked test returns."""
    mark = pyfuncitem.get_closest_marker("posenc")
    if mark is None:
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    thing = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    if thing is None:
        pytest.fail("the test returned nothing; it must return what is to be checked", False)
    try:
        report = check(thing, **{"name": pyfuncitem.name, **mark.kwargs})
    except CannotCheckError as reason:
        pytest.fail(f"could not check {pyfuncitem.name}: {reason}", False)
    if not report.ok:
        pytest.fail(str(report), False)
    return True
