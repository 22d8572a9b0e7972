"""``python -m tests.oracle_models``: every model type held against its reading, in one command.

Results are kept line by line, so that a run that was cut off goes on where it stopped.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

from tests.oracle_models.forked import apart

KEPT = Path(".oracle_models.jsonl")


def row_of(model_type: str) -> dict:
    """The verdict of one type, from a process of its own."""
    from tests.oracle_models.oracle import Verdict, read_only, verdict

    def row() -> dict:
        since = time.perf_counter()
        try:
            found = verdict(model_type)
        except BaseException as error:
            found = Verdict(model_type, "failed", why=f"{type(error).__name__}: {error}"[:300])
        found.seconds = round(time.perf_counter() - since, 2)
        return found.row()

    return apart(row) or read_only(model_type, "it took long").row()


def main() -> int:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle_models", description=__doc__)
    parser.add_argument("types", nargs="*", help="model types; all of them if none is named")
    parser.add_argument("--fresh", action="store_true", help="forget what was kept")
    parser.add_argument("--write", action="store_true", help="write docs/models.md and the list")
    parser.add_argument("--defaults", action="store_true", help="write model_types.json anew")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    import transformers.modeling_utils  # noqa: F401
    from transformers import logging

    logging.set_verbosity_error()
    torch.set_num_threads(1)
    if chosen.defaults:
        from tests.oracle_models.types import write

        write()
        return 0
    from posenc.interop.families import names

    if chosen.fresh:
        KEPT.unlink(missing_ok=True)
    kept = {}
    if KEPT.exists():
        kept = {row["model_type"]: row for row in map(json.loads, KEPT.read_text().splitlines())}
    since = time.monotonic()
    with KEPT.open("a") as out:
        for model_type in chosen.types or names():
            if (
                model_type in kept and not chosen.types
            ) or time.monotonic() - since > chosen.seconds:
                continue
            kept[model_type] = row = row_of(model_type)
            out.write(json.dumps(row) + "\n")
            out.flush()
    shown = [kept[name] for name in (chosen.types or names()) if name in kept]
    for row in shown:
        if row["status"] in ("differs", "failed") or chosen.types:
            print(
                row["model_type"],
                row["status"],
                row["checks"],
                row["does"],
                row["differing"] or row["why"],
            )
    counts = {s: sum(r["status"] == s for r in shown) for s in sorted({r["status"] for r in shown})}
    print(f"{len(shown)} of {len(names())} types:", counts)
    if chosen.write:
        from tests.oracle_models.page import write as write_page

        write_page(kept)
    return any(row["status"] in ("differs", "failed") for row in shown)


if __name__ == "__main__":
    sys.exit(main())
