"""The C sources under AddressSanitizer and UBSan, and once more under ThreadSanitizer.

A family of kernels is driven by the file of its name in ``sanitized/``.
"""

import pytest
from tests.kernels.sanitizers import COMPILER, DRIVERS, SOURCES, built, check

from posenc.kernels.library import library


def test_every_family_has_a_driver():
    families = {path.stem for path in SOURCES.glob("*.c")} - {"parallel"}
    assert families == {path.stem for path in DRIVERS}


@pytest.mark.slow("C sources compiled and run with sanitizers")
@pytest.mark.skipif(COMPILER is None or library() is None, reason="there is no C compiler")
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda path: path.stem)
def test_no_byte_too_far_no_overflow_and_no_race(tmp_path, driver, sanitizers):
    check(built(driver, sanitizers, tmp_path))
