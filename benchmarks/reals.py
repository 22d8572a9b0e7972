"""Tables at real coordinates beside tables at as many whole positions, of every encoding.

    python -m benchmarks.reals [--tokens 16] [--only perceiver alibi] [--above 1.4] [--rounds 30]
        [--json FILE]

Every case of the contract battery that takes reals builds its table at each kind of coordinates and
at whole positions, in turns, and the least times of all turns are compared: processor's time of one
thread, without gradients. Goal: 1.5. Biases are built between all pairs, of one query, and between
queries and keys that are not one object. --above leaves out the rows that stay below.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.positions import Coordinates
from posenc.testing.cases import Case, Scores

ROUNDS, LEAST_SECONDS = 30, 1e-3
KINDS = (
    *("halves", "30ths", "2^-30", "steps"),
    *("seconds", "s / 30", "-s, 1 ms", "-s, -1 ms", "s, 10 µs", "s, steps", "-s, steps"),
)
"""Exact ones, the last with a step an axis; and seconds of float64, some below 0, which are rounded
to one step; the last again with a step an axis."""


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'':33}{'whole':>9}" + "".join(f"{kind:>12}" for kind in KINDS))
    rows = []
    for row in measured(options.tokens, options.only, options.rounds):
        rows.append(row)
        if max(row["ratios"].values()) >= options.above:
            print(line(row), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")


def line(row: dict) -> str:
    """Microseconds at whole positions, and the ratios of the others."""
    ratios = (row["ratios"].get(kind) for kind in KINDS)
    told = "".join("           –" if ratio is None else f"{ratio:12.2f}" for ratio in ratios)
    return f"{row['encoding']:<20}{row['between']:<13}{row['microseconds']:6.0f} µs{told}"


@torch.no_grad()
def measured(tokens: int, only: list[str] | None, rounds: int) -> Iterator[dict]:
    """A row an encoding, and for biases one for each choice of queries and keys."""
    for name, case in cases().items():
        if only and name not in only:
            continue
        encoding, subject = case.module(), case.subject()
        if not encoding.takes_reals:
            continue
        shape = subject.lifted(torch.arange(tokens)).shape
        drawn = coordinates(*shape, grid=getattr(encoding, "grid", None))
        for between, choose in (PAIRS if isinstance(subject, Scores) else ALONE).items():
            tables = {
                kind: partial(encoding.table, *choose(each))  # type: ignore[arg-type]
                for kind, each in drawn.items()
            }
            seconds = least(tables, rounds)
            whole = seconds.pop("whole")
            ratios = {kind: round(each / whole, 3) for kind, each in seconds.items()}
            yield {"encoding": name, "between": between, "tokens": tokens,
                   "microseconds": whole * 1e6, "ratios": ratios}  # fmt: skip


def cases() -> dict[str, Case]:
    """Every encoding that the contract battery knows."""
    found: dict[str, Case] = {}
    for path in sorted((Path(__file__).parents[1] / "tests" / "contracts").glob("test_*.py")):
        found |= import_module(f"tests.contracts.{path.stem}").CASES
    return found


ALONE: dict[str, Callable[[Any], tuple]] = {"": lambda positions: (positions,)}
PAIRS: dict[str, Callable[[Any], tuple]] = {
    "all pairs": lambda positions: (positions, positions),
    "one query": lambda positions: (positions[-1:], positions),
    "other keys": lambda positions: (positions, positions[torch.arange(len(positions))]),
}


def coordinates(
    *shape: int, grid: tuple[int, ...] | None = None
) -> dict[str, Tensor | Coordinates]:
    """Whole positions, and each of ``KINDS`` that such points can be of, inside a grid if given."""

    def waits(least: float, sign: int = 1) -> Tensor:
        return inside(sign * seconds(shape, least))

    def inside(drawn: Tensor) -> Tensor:
        return drawn if grid is None else drawn % (torch.tensor(grid) - 1)

    whole = torch.randint(2**14, shape) % torch.tensor(grid or 2**14)
    made: dict[str, Tensor | Coordinates] = {
        "whole": whole,
        "halves": Coordinates(whole, scale=Fraction(1, 2)),
        "30ths": Coordinates(whole, scale=Fraction(1, 30)),
        "2^-30": Coordinates.rounded(waits(0.001), Fraction(1, 2**30)),
        "seconds": Coordinates(waits(0.001)),
        "s / 30": Coordinates(waits(0.001)) / 30,
        "-s, 1 ms": Coordinates(waits(-0.001, -1)),
        "-s, -1 ms": Coordinates(waits(0.001, -1)),
        "s, 10 µs": Coordinates(waits(1e-5)),
    }
    if len(shape) > 1:
        steps = [Fraction(1, 7 + axis) for axis in range(shape[-1])]
        made["steps"] = Coordinates(whole, scale=steps)
        for kind, sign in (("s, steps", 1), ("-s, steps", -1)):
            drawn = [sign * seconds(shape[:-1], sign * 0.001) for _ in steps]
            axes = inside(torch.stack(drawn, -1)).unbind(-1)
            parts = [Coordinates(each) * step for each, step in zip(axes, steps, strict=True)]
            made[kind] = Coordinates.stack(parts, dim=-1)
    return made


def seconds(shape: tuple[int, ...], least: float) -> Tensor:
    """Waits of ten minutes on average, and one so short that no step holds all exactly."""
    drawn = torch.rand(shape, dtype=torch.float64).log() * -600
    drawn.view(-1)[0] = least
    return drawn


def least(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of the processor that one call of each took, who take turns."""
    repeats = max(1, int(LEAST_SECONDS / min(_spent(calls["whole"], 1) for _ in range(3))))
    turns = [{name: _spent(call, repeats) for name, call in calls.items()} for _ in range(rounds)]
    return {name: min(turn[name] for turn in turns) for name in calls}


def _spent(call: Callable[[], object], repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - begin) / repeats


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--only", nargs="+", help="names of cases, as perceiver")
    parser.add_argument("--above", type=float, default=0.0, help="leave out rows that stay below")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
