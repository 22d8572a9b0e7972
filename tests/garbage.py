"""Garbage is looked for among what tests make, not among the million objects of the suite itself.

Modules, tests and their parameters live until the end. To go through them whenever enough is new
costs seconds in every process, a third of all collecting.
"""

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for none while tests are collected, and never again among what stands then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
