"""``python -m tests.patched_models``: every check of every type, and the table of the page."""

import re
import sys
import warnings
from pathlib import Path

import torch
from tests.patched_models import checks
from tests.patched_models.building import NAMED, built, generates, listens
from transformers import logging

from posenc.interop.huggingface import patch

PAGE = Path(__file__).parents[2] / "docs" / "patched-models.md"
HEAD = (
    "| model type | cosines and sines | checked | after YaRN, the configuration |\n"
    "|---|---|---|---|\n"
)


def row(name: str) -> str:
    """One line, after running every check of one type."""
    for check in checks.CHECKS.values():
        check(name)
    model = built(name)
    with patch(model) as inside:
        forms = sorted({each.form for each in inside.measurements})
    patched = checks.extension(name)
    says = "follows" if patched.config_follows else f"does not follow: {patched.why_not}"
    return f"| `{name}` | {', '.join(forms)} | {_checked(model)} | {says} |"


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
    """Puts lines into the table that ends the page; those of other types stay."""
    lines = {**rows(), **found}
    whole = HEAD + "\n".join(lines[name] for name in NAMED if name in lines)
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(HEAD)
    PAGE.write_text(text[:start] + whole + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    for name in sys.argv[1:] or NAMED:
        try:
            write({name: row(name)})
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    sys.exit(failed)
