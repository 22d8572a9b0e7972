"""Numbers and words held as JSON, compared by value. A test file that is run writes its own."""

import json
from math import isclose, isnan
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def known(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def write(name: str, made: dict[str, Any], **how: Any) -> None:
    text = json.dumps(made, ensure_ascii=False, **how)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def near(got: Any, want: Any, relative: float = 1e-6, absolute: float = 1e-9) -> bool:
    """Whether floats are near, and all else is equal."""
    if isinstance(want, float) and isinstance(got, float):
        both_nan = isnan(got) and isnan(want)
        return both_nan or isclose(got, want, rel_tol=relative, abs_tol=absolute)
    if isinstance(want, dict) and isinstance(got, dict):
        same = got.keys() == want.keys()
        return same and all(near(got[name], want[name], relative, absolute) for name in want)
    if isinstance(want, list) and isinstance(got, list):
        pairs = zip(got, want, strict=False)
        return len(got) == len(want) and all(near(*each, relative, absolute) for each in pairs)
    return got == want
