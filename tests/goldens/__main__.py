"""Compare what the code makes with what is held, or write it: python -m tests.goldens [--write]."""

import argparse
import sys

from tests.goldens import held


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(held.SUBJECTS))
    parser.add_argument("--write", action="store_true", help="hold what the code makes now")
    given = parser.parse_args()
    changed = 0
    for subject in given.subjects or held.SUBJECTS:
        for line in held.compared(subject):
            print(line)
            changed += 1
        if given.write:
            held.write(subject)
    return 0 if given.write else int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
