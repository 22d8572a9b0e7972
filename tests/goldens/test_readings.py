"""Files that say no more than their type are read as they were."""

from tests.goldens.readings import frozen, reading


def test_every_model_type_is_read_as_it_was():
    differing = {}
    for name, then in frozen().items():
        now = reading({"model_type": name})
        if then is not None and now != then:
            differing[name] = now, then
    assert not differing
