"""Three hundred mechanical mutants of what is right: each is blamed, refused, or told apart.

Those of which nothing is said stand in ``missed.txt``: that they do the same, or that they do not.
"""

from pathlib import Path

import pytest
from tests.audit.mutation import chosen
from tests.audit.zoo.right import RIGHT
from tests.audit.zoo.right.rotary import Cached

from posenc.audit import check


def verdict(thing, options) -> tuple[str, ...]:
    """What a check says, without numbers."""
    try:
        report = check(thing, **options)
    except Exception:
        return ("refused",)
    if report.status == 2:
        return ("refused",)
    names = sorted(fault.name for fault in report.found)
    return (*names, report.identity.partition(": equal")[0], report.understood)


@pytest.mark.slow("checks three hundred mutants")
def test_mutants_are_told_from_what_is_right():
    text = Path(__file__).with_name("missed.txt").read_text()
    same, other = text.split("# They do something else")
    specimens = {specimen.thing.__name__: specimen for specimen in RIGHT}
    right = {name: verdict(each.thing, each.options) for name, each in specimens.items()}
    told, silent = 0, []
    for mutant in chosen([each.thing for each in specimens.values()], 300):
        try:
            thing = mutant.build()
        except Exception:
            continue
        apart = verdict(thing, specimens[mutant.thing].options) != right[mutant.thing]
        told += apart
        silent += [] if apart else [mutant.name]
    listed, missed = (set(part.splitlines()) for part in (same + other, other))
    assert set(silent) <= listed, "\n".join(sorted(set(silent) - listed))
    missed &= set(silent)
    assert told > 240
    assert len(missed) < 0.1 * (told + len(missed))


def test_some_mutants_are_found():
    right = verdict(Cached, {})
    assert sum(verdict(m.build(), {}) != right for m in chosen([Cached], 12)) > 6
