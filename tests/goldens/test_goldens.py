"""What was right stays as it was; see CONTRIBUTING."""

from inspect import isabstract

import pytest
from tests.goldens import held

import posenc

KEYS = [(subject, key) for subject in held.SUBJECTS for key in held.keys(subject)]


@pytest.fixture(scope="module", autouse=True)
def no_rank_left():
    from tests.goldens import shards

    yield
    shards.close()


@pytest.mark.parametrize(("subject", "key"), KEYS, ids=lambda name: name.replace(" ", "-"))
def test_nothing_changed(subject, key):
    assert "\n".join(held.differences(subject, key)) == ""


@pytest.mark.parametrize("subject", held.SUBJECTS)
def test_every_held_case_is_made(subject):
    assert held.left_over(subject) == []


def test_every_public_encoding_is_held():
    from tests.goldens.encodings import battery

    bases = posenc.TokenEncoding, posenc.QueryKeyEncoding, posenc.ScoreEncoding
    public = [getattr(posenc, name) for name in dir(posenc)]
    built = {type(part) for case in battery().values() for part in case.module().modules()}
    classes = {each for each in public if isinstance(each, type) and issubclass(each, bases)}
    assert {each for each in classes if not isabstract(each)} <= built
