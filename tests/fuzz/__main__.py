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

EVERY_BACKEND = ("sdpa", "flex", "strided", "dense", "explicit")


def commit_seed() -> int:
    """A seed from the newest commit: each is tried elsewhere, and can be tried again."""
    told = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=False
    )
    return int(told.stdout.strip() or "0", 16)


def main(words: list[str] | None = None) -> int:
    """Hunt; 1 if something was found, 2 if too little was met to say anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, help="how long; until the cases are done if left out"
    )
    parser.add_argument(
        "--cases", type=int, default=None, help="how many (default: 3600, or no end)"
    )
    parser.add_argument("--seed", type=int, default=None, help="default: from the newest commit")
    parser.add_argument(
        "--only", choices=HUNTS, action="append", help="one subject; may be repeated"
    )
    parser.add_argument(
        "--at-least", type=int, default=0,
        help="go on until so many cases were met, five times as long at most; fail if they are not",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes that hunt side by side")
    given = parser.parse_args(words)
    start = commit_seed() if given.seed is None else given.seed
    cases = given.cases or (10**9 if given.minutes else 3600)
    print(f"hunting from seed {start}, {given.jobs} at a time", flush=True)
    found, enough = "", not given.at_least
    for turn in range(TURNS if given.minutes else 1):
        found = _turn(given, cases, start + 15_485_863 * turn)
        met = sum(sum(TALLY[subject].values()) for subject in ("cases", "commands"))
        enough = enough or _enough(met, given.at_least)
        if found or enough:
            break
    print(TALLY)
    if found:
        print(found + "pin the case in tests/fuzz/test_pinned.py")
        return 1
    print(f"{met} cases, nothing found")
    return 0 if enough else 2


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


def _enough(met: int, least: int) -> bool:
    """Whether the hunt met what it must have met for its silence to mean anything."""
    seldom = {name: TALLY["backends"][name] for name in EVERY_BACKEND}
    few = [f"{name} {times} of 100" for name, times in seldom.items() if times < 100]
    if TALLY["backends"]["compiled"] < 5:
        few.append(f"compiled {TALLY['backends']['compiled']} of 5")
    if met < least:
        few.append(f"cases {met} of {least}")
    if few:
        print("too little was met so far: " + ", ".join(few))
    return not few


if __name__ == "__main__":
    sys.exit(main())
