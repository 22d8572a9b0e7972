"""``python -m tests.patched_models``: every check of every type, and the table of the page."""

import re
import sys
import time
import warnings
from pathlib import Path

import torch
from tests.patched_models import checks
from tests.patched_models.building import NAMED, built, generates, listens, missing
from transformers import logging

PAGE = Path(__file__).parents[2] / "docs" / "patched-models.md"
HEAD = (
    "| model type | cosines and sines | checked | after YaRN, the configuration |\n"
    "|---|---|---|---|\n"
)


def row(name: str) -> str:
    """One line, after running every check of one type.

    Raises:
        AssertionError: A check fails.
    """
    for check in checks.CHECKS.values():
        check(name)
    model = built(name)
    patched = checks.extension(name)
    says = "follows" if patched.config_follows else f"does not follow: {patched.why_not}"
    return f"| `{name}` | {', '.join(checks.forms(model))} | {_checked(model)} | {says} |"


def _checked(model) -> str:
    """What of the checks a model can be asked at all."""
    if listens(model):
        return "all but generation and padding"
    if not generates(model):
        return "all but generation"
    return "all but beams" if model._is_stateful else "all"


def rows() -> dict[str, str]:
    """The lines of the page, by model type."""
    found = re.findall(r"^(\| `(\w+)` \|.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: line for line, name in found}


def write(found: dict[str, str]) -> None:
    """Puts lines into the page; those of other types stay."""
    lines = {**rows(), **found}
    whole = HEAD + "\n".join(lines[name] for name in NAMED if name in lines)
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(HEAD.split("\n")[0]), text.index("\n\n", text.index(HEAD[:20]))
    PAGE.write_text(text[:start] + whole + text[end:], encoding="utf-8")


def main() -> int:
    """Tries the types that are named, all of them if none is, and writes their lines."""
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    for name in sys.argv[1:] or NAMED:
        if why := missing(name):
            print(f"{name}: left out, {why}")
            continue
        since = time.perf_counter()
        try:
            write({name: row(name)})
            print(f"{name}: {time.perf_counter() - since:.1f} s", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
