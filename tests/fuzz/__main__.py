"""``python -m tests.fuzz``: hunt for a number of cases or for minutes, and say what was met."""

import argparse
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.hunt import HUNTS, hunted
from tests.fuzz.tally import TALLY

TURNS = 5
"""How many times the minutes a slow machine may take to meet enough."""

ENOUGH = {"sdpa": 100, "flex": 100, "strided": 100, "dense": 100, "explicit": 100, "compiled": 5}


def commit_seed() -> int:
    """A seed from the newest commit: each is tried elsewhere, and can be tried again."""
    told = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=False
    )
    return int(told.stdout.strip() or "0", 16)


def main(words: list[str] | None = None) -> int:
    """Hunt; 1 if something was found, 2 if too little was met to say anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, help="how long; until the cases are done if left out")
    add("--cases", type=int, help="how many (default: 3600, or no end)")
    add("--seed", type=int, help="default: from the newest commit")
    add("--only", choices=HUNTS, action="append", help="one subject; may be repeated")
    add("--at-least", type=int, default=0,
        help="go on until so many cases were met, five times as long at most; or fail")  # fmt: skip
    add("--jobs", type=int, default=1, help="processes that hunt side by side")
    given = parser.parse_args(words)
    start = commit_seed() if given.seed is None else given.seed
    cases = given.cases or (10**9 if given.minutes else 3600)
    print(f"hunting from seed {start}, {given.jobs} at a time", flush=True)
    found, few = "", []
    for turn in range(TURNS if given.minutes else 1):
        found = _turn(given, cases, start + 15_485_863 * turn)
        met = TALLY["cases"].total()
        few = _few(met, given.at_least) if given.at_least else []
        if found or not few:
            break
        print("too little was met so far: " + ", ".join(few))
    print(TALLY)
    print(f"{found}pin the case in tests/fuzz/test_pinned.py" if found
          else f"{met} cases, nothing found")  # fmt: skip
    return 1 if found else 2 * bool(few)


def _turn(given: argparse.Namespace, cases: int, start: int) -> str:
    """The hunts of all processes, for the minutes or cases that were asked for; what they found."""
    names, count = given.only or list(HUNTS), -(-cases // given.jobs)
    asked = [(names, count, start + 104_729 * job, given.minutes) for job in range(given.jobs)]
    found = ""
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        for tally, fault in pool.map(hunted, asked):
            TALLY.join(tally)
            found = found or fault
    return found


def _few(met: int, least: int) -> list[str]:
    """What the hunt met too seldom for its silence to mean anything."""
    seen = TALLY["backends"]
    few = [f"{name} {seen[name]} of {most}" for name, most in ENOUGH.items() if seen[name] < most]
    return [*few, *([f"cases {met} of {least}"] if met < least else [])]


if __name__ == "__main__":
    sys.exit(main())
