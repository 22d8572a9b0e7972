"""Change one token of a file at a time, and count the changes that its nearest tests notice.

python -m tests.mutants [--count 300] [--seed 0] [--only NAME ...] writes to the source tree while
it runs, and puts each file back. A change is a constant one larger, a sign or an arithmetic
operation exchanged, a comparison moved by its border or turned round.
"""

import argparse
import ast
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/posenc"
FILES = {
    "encodings/queries_keys/rotary.py": [
        "tests/encodings/queries_keys/test_rotary.py", "tests/kernels/test_fronts.py"],
    "numerics/sincos.py": ["tests/numerics/test_sincos.py", "tests/kernels/test_values.py"],
    "numerics/phases.py": ["tests/numerics/test_phases.py", "tests/kernels/test_values.py"],
    "numerics/buckets.py": ["tests/numerics/test_buckets.py"],
    "backends/masks.py": ["tests/backends/test_backends.py", "src/posenc/backends/masks.py"],
    "backends/strided/blocks.py": ["tests/backends/test_backends.py"],
    "transformer/cache.py": ["tests/transformer/test_cache.py"],
    "positions/packing.py": ["tests/positions", "src/posenc/positions/packing.py"],
    "frequencies/yarn.py": ["tests/frequencies"],
    "interop/oracle/rotation.py": ["tests/interop/test_oracle.py"],
}  # fmt: skip
"""Each file, and the tests that should notice a change in it."""

SECONDS = 120  # a change that takes longer is noticed: it does not end
EXCHANGED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "//",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip

Change = tuple[int, int, int, str]
"""Line, first and last column (in bytes), and what stands there instead."""


def changes(text: str) -> Iterator[Change]:
    """Every change of a file."""
    lines = text.encode().split(b"\n")
    for node in ast.walk(ast.parse(text)):
        value: object = getattr(node, "value", None)
        if isinstance(node, ast.Constant) and isinstance(value, int | float):
            assert node.end_col_offset is not None
            if not isinstance(value, bool):
                yield node.lineno, node.col_offset, node.end_col_offset, repr(value + 1)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield node.lineno, node.col_offset, node.col_offset + 1, "+"
        elif isinstance(node, ast.BinOp):
            yield from _between(lines, node.left, node.op, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _between(lines, node.left, node.ops[0], node.comparators[0])


def _between(lines: list[bytes], left: ast.expr, op: ast.AST, right: ast.expr) -> Iterator[Change]:
    """The operation between two expressions on one line."""
    if type(op) not in EXCHANGED or left.end_lineno != right.lineno:
        return
    assert left.end_col_offset is not None
    sign = SIGNS[type(op)].encode()
    at = lines[right.lineno - 1].find(sign, left.end_col_offset, right.col_offset)
    if at >= 0:
        yield right.lineno, at, at + len(sign), EXCHANGED[type(op)]


def changed(text: str, change: Change) -> str:
    """The text with one change."""
    line, begin, end, new = change
    lines = text.encode().split(b"\n")
    lines[line - 1] = lines[line - 1][:begin] + new.encode() + lines[line - 1][end:]
    return b"\n".join(lines).decode()


def passes(tests: list[str]) -> bool:
    """Whether these tests pass, in a process that has loaded torch already."""
    if child := os.fork():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status) == 0
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return False
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    import pytest

    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not compiles"]
    os._exit(int(pytest.main([*options, *tests])))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    given = parser.parse_args()
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a file is put back then, too
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
    kept, tried = 0, 0
    for name, tests in FILES.items():
        if given.only and not any(each in name for each in given.only):
            continue
        if not passes(tests):
            print(f"{name}: its tests fail without a change")
            return 1
        path = SOURCE / name
        text = path.read_text()
        every = sorted(set(changes(text)))
        chosen = random.Random(given.seed).sample(every, min(len(every), given.count // len(FILES)))
        survivors = []
        try:
            for change in sorted(chosen):
                path.write_text(changed(text, change))
                if passes(tests):
                    line = changed(text, change).split("\n")[change[0] - 1]
                    survivors.append(f"{change[0]}: {line.strip()}")
        finally:
            path.write_text(text)
        kept, tried = kept + len(survivors), tried + len(chosen)
        print(f"{name}: {len(chosen) - len(survivors)} of {len(chosen)} noticed", flush=True)
        for line in survivors:
            print(f"    {line}", flush=True)
    print(f"{tried - kept} of {tried} noticed: {(tried - kept) / tried:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
