"""Chromium and axe, for the tests that read pages; skipped where a browser is a luxury."""

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

REQUIRED = os.environ.get("POSENC_REQUIRE_BROWSER") == "1"


def missing(what: str) -> None:
    """Skips where a browser is a luxury, and fails where it was asked for."""
    (pytest.fail if REQUIRED else pytest.skip)(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing("there is no chromium; install the package of that name")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


Faults = list[tuple[str, list[str]]]
"""Rules that a page breaks: the name of each, and where."""


class Axe:
    """axe's rules for accessible pages.

    Its script is held once: a session of many pages reads it from memory.
    """

    def __init__(self, script: str):
        self.script = script

    def faults(self, page: Any, rules: Sequence[str] = ()) -> Faults:
        """Every rule that the page breaks as it stands, of some rules or of all."""
        page.evaluate(self.script)
        asked = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        broken = page.evaluate("(asked) => axe.run(asked)", asked)["violations"]
        return [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in broken]


@pytest.fixture(scope="session")
def axe() -> Axe:
    """axe, from the package that carries its script."""
    try:
        from axe_playwright_python.base import AXE_SCRIPT
    except ImportError:
        missing("axe-playwright-python is not installed")
    return Axe(AXE_SCRIPT)
