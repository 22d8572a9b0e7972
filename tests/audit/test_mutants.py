"""Three hundred mechanical mutants of what is right: each is blamed, refused, or told apart.

Those of which nothing is said are listed in ``missed.txt``, so that a new one shows.
"""

from pathlib import Path

import pytest
import torch
from tests.audit.mutation import chosen
from tests.audit.test_zoo import RIGHT

from posenc.audit import CannotCheckError, check
from posenc.audit.report import NotAskedError
from posenc.audit.subjects import subject_of
from posenc.audit.understanding import understood

NUMBER = 300
LISTED = Path(__file__).with_name("missed.txt")


def verdict(thing, options) -> tuple[str, ...]:
    """What a check says, without numbers."""
    try:
        report = check(thing, **options)
    except CannotCheckError:
        return ("refused",)
    except Exception as error:
        return ("refused", type(error).__name__) if "mutant" in str(error) else ("refused",)
    if report.status == 2:
        return ("refused",)
    names = sorted(fault.name for fault in report.found)
    return (*names, report.identity.partition(": equal")[0], report.understood)


def behavior(thing, options) -> torch.Tensor | None:
    """What it does to some content, as numbers."""
    try:
        subject = subject_of(thing, {}, None)
        kind, layout = options.get("kind"), options.get("layout")
        view = understood(subject, kind, layout, None, None)
        if view.kind == "added":
            return view.rows(view.longest(96))
        if view.kind == "bias":
            sizes = [(16, 16), (64, 64), *([(1, 40)] if view.rows else [])]
            return torch.cat([view.bias(q, k).double().flatten() for q, k in sizes])
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(1, 4, 64, view.dim, generator=generator)
        made = [m for m in view.both(x, x[:, : view.kv_heads]) if m is not None]
        return torch.cat([m.double().flatten() for m in made])
    except (CannotCheckError, NotAskedError):
        return None


def is_equivalent(one, other) -> bool:
    """Whether two do the same, so that nothing is to be found."""
    if one is None or other is None or one.shape != other.shape:
        return False
    return bool((one - other).nan_to_num(0.0, 0.0, 0.0).abs().max() < 1e-5)


def missed() -> tuple[int, list[str]]:
    """How many mutants differ from what they are of, and those of which nothing is said."""
    by_name = {specimen.thing.__name__: specimen for specimen in RIGHT[::-1]}
    kept = {name: specimen for name, specimen in by_name.items() if name != "Ours"}
    told: dict[str, tuple] = {}
    different, silent = 0, []
    for mutant in chosen([specimen.thing for specimen in kept.values()], NUMBER):
        specimen = kept[mutant.thing]
        if mutant.thing not in told:
            told[mutant.thing] = (
                verdict(specimen.thing, specimen.options),
                behavior(specimen.thing, specimen.options),
            )
        right, does = told[mutant.thing]
        try:
            thing = mutant.build()
        except Exception:
            continue
        found = verdict(thing, specimen.options)
        if is_equivalent(does, behavior(thing, specimen.options)):
            continue
        different += 1
        if found == right:
            silent.append(mutant.name)
    return different, sorted(silent)


@pytest.mark.slow("checks three hundred mutants")
def test_mutants_are_told_from_what_is_right():
    different, silent = missed()
    assert different > 150
    assert set(silent) <= set(LISTED.read_text().splitlines()), "\n".join(silent)
    assert len(silent) < 0.1 * different


def test_some_mutants_are_found():
    from tests.audit.zoo.right.rotary import Cached

    found = [verdict(m.build(), {}) for m in chosen([Cached], 12)]
    right = verdict(Cached, {})
    assert sum(one != right for one in found) > 6
