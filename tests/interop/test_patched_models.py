"""Every kind of model that patch serves, through the same checks; three of them in each run."""

import pytest
from tests.patched_models import __main__ as table
from tests.patched_models import checks
from tests.patched_models.building import NAMED, REPRESENTATIVES, missing
from transformers import logging

logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def _skip_what_is_missing(request):
    name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
    if name and (why := missing(name)):
        pytest.skip(why)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_patched_model_does_what_it_did(name, check):
    check(name)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_extended_model_is_saved_as_it_is_or_says_why_not(name):
    patched = checks.extension(name)
    assert patched.config_follows == (name != "gptj")


@pytest.mark.slow("builds and runs each of seventy types some thirty times, in minutes")
@pytest.mark.parametrize("name", NAMED)
def test_the_table_of_the_page_says_what_a_new_run_finds(name):
    logging.set_verbosity_error()
    assert table.rows()[name] == table.row(name)


def test_the_page_has_a_line_for_every_type():
    assert list(table.rows()) == list(NAMED)
