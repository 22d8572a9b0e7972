"""``python -m tests.oracle_models``: every model type measured and held against its reading.

``--write`` writes ``families.json`` and ``docs/models.md`` of what was found. Results are kept line
by line, so that a run that was cut off goes on where it stopped.
"""

import argparse
import json
import sys
import time
import warnings
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from typing import Any

KEPT = Path(".oracle_models.jsonl")
SECONDS = 60


def row_of(model_type: str) -> dict[str, Any]:
    """The verdict on one type and its facts."""
    from tests.oracle_models.agreeing import Verdict, verdict
    from tests.oracle_models.measuring import measured

    since = time.perf_counter()
    try:
        found, facts = verdict(model_type), measured(model_type)
    except BaseException as error:
        found, facts = Verdict(model_type, "failed", why=f"{error!r}"[:300]), {}
    found.seconds = round(time.perf_counter() - since, 2)
    return {**vars(found), "facts": facts}


def apart(model_type: str) -> dict[str, Any]:
    """The same from a process of its own: some types take too long, and one cannot be stopped."""
    from tests.oracle_models.agreeing import Verdict

    with get_context("fork").Pool(1) as pool:
        try:
            return pool.apply_async(row_of, (model_type,)).get(SECONDS)
        except TimeoutError:
            late = Verdict(model_type, "not run", why="it took long")
            return {**vars(late), "facts": {}}


def main() -> int:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle_models", description=__doc__)
    parser.add_argument("types", nargs="*", help="model types; all of them if none is named")
    parser.add_argument("--fresh", action="store_true", help="forget what was kept")
    parser.add_argument("--write", action="store_true", help="write families.json and the page")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    from transformers import logging

    from posenc.interop.fields import names

    logging.set_verbosity_error()
    torch.set_num_threads(1)
    if chosen.fresh:
        KEPT.unlink(missing_ok=True)
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    kept = {row["model_type"]: row for row in map(json.loads, lines)}
    with KEPT.open("a") as out:
        for model_type in chosen.types or [name for name in names() if name not in kept]:
            kept[model_type] = row = apart(model_type)
            out.write(json.dumps(row) + "\n")
            out.flush()
    shown = [kept[name] for name in (chosen.types or names()) if name in kept]
    for row in shown:
        if row["status"] in ("differs", "failed") or chosen.types:
            print(row["model_type"], row["status"], row["checks"], row["does"], row["why"])
    counts = {s: sum(r["status"] == s for r in shown) for s in sorted({r["status"] for r in shown})}
    print(f"{len(shown)} of {len(names())} types:", counts)
    if chosen.write:
        from tests.oracle_models import page, writing

        writing.write(kept)
        page.write(kept)
    return any(row["status"] in ("differs", "failed") for row in shown)


if __name__ == "__main__":
    sys.exit(main())
