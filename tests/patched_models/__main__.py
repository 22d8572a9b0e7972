"""``python -m tests.patched_models``: every check of every type, and the table of the page."""

import sys
import time
import warnings

import torch
from tests.patched_models import table
from tests.patched_models.building import NAMED, missing
from transformers import logging


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
            table.write({name: table.row(name)})
            print(f"{name}: {time.perf_counter() - since:.1f} s", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
