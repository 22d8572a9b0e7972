"""``python -m tests.fuzz``: hunt for a number of cases or for minutes."""

import argparse
import multiprocessing
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from math import inf

from tests.fuzz.hunt import HUNTS, hunted


def main(words: list[str] | None = None) -> int:
    """Hunt; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=inf, help="how long; until the cases are done if left out")
    add("--cases", type=int, help="how many (default: 3600, or no end)")
    add("--seed", type=int, default=random.randrange(10**9), help="default: another each time")
    add("--only", choices=HUNTS, action="append", help="one subject; may be repeated")
    add("--jobs", type=int, default=1, help="processes that hunt side by side")
    given = parser.parse_args(words)
    cases = given.cases or (3600 if given.minutes == inf else 10**9)
    print(f"hunting from seed {given.seed}, {given.jobs} at a time", flush=True)
    names, count = given.only or list(HUNTS), -(-cases // given.jobs)
    asked = [(names, count, given.seed + 104_729 * job, given.minutes) for job in range(given.jobs)]
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        found = next(filter(None, pool.map(hunted, asked)), "")
    print(f"{found}pin the case in tests/fuzz/test_pinned.py" if found else "nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
