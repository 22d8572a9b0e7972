"""The site that ``make docs`` has built, or the one at ``POSENC_SITE``."""

import os
from pathlib import Path

import pytest

ASKED = os.environ.get("POSENC_SITE")
BUILT = Path(ASKED or Path(__file__).parents[2] / "docs/_build/html")


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built pages."""
    if not (BUILT / "index.html").is_file():
        (pytest.fail if ASKED else pytest.skip)(
            f"there is no site at {BUILT}; `make docs` builds it"
        )
    return BUILT.resolve()
