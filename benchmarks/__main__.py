"""``python -m benchmarks [--quick] [--only NAME ...] [--json FILE] [--plot FILE]``"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks import (
    addition,
    attention,
    calls,
    graphs,
    growth,
    harness,
    memory,
    models,
    packing,
    rotary,
    table_construction,
)
from benchmarks.harness import Timing, machine, measure

BENCHMARKS = {
    "table": table_construction,
    "add": addition,
    "rotary": rotary,
    "attention": attention,
    "calls": calls,
    "growth": growth,
    "graphs": graphs,
    "models": models,
    "pack": packing,
}


def main() -> None:
    options = _options()
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.device != "cpu":
        torch.set_default_device(options.device)
    if options.busy:
        harness.clock = time.process_time
    memory.keep_memory()
    facts = machine()
    print(", ".join(f"{name} {fact}" for name, fact in facts.items()))
    timings: list[Timing] = []
    for name in options.only or BENCHMARKS:
        for case in BENCHMARKS[name].cases(options.quick):
            found = measure(case, options.rounds)
            timings += found
            _show(found)
    if options.json:
        report = {"machine": facts, "timings": [asdict(timing) for timing in timings]}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        from benchmarks.plot import draw

        draw(timings, options.plot)


def _show(timings: list[Timing]) -> None:
    against = f"× {timings[0].against}"
    heads = f"{'time':>11}{against:>13}{'× posenc':>10}{'processor':>11}{'× posenc':>10}"
    heads += f"{'of copy':>9}{'MB peak':>9}"
    print(f"\n{timings[0].case:<46}{heads}", flush=True)
    for t in timings:
        share = "–" if t.roofline is None else f"{100 * t.roofline:.0f} %"
        peak = "–" if t.megabytes is None else f"{t.megabytes:.0f}"
        numbers = f"{t.times_base:13.2f}{t.times_ours:10.2f}"
        numbers += f"{_duration(t.processor_milliseconds):>11}{t.processor_times_ours:10.2f}"
        numbers += f"{share:>9}{peak:>9}"
        print(f"  {t.name:<44}{_duration(t.milliseconds):>11}{numbers}", flush=True)


def _duration(milliseconds: float) -> str:
    if milliseconds < 1:
        return f"{1e3 * milliseconds:.3g} µs"
    return f"{milliseconds:.3g} ms" if milliseconds < 1e3 else f"{1e-3 * milliseconds:.3g} s"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time posenc beside its peers, in one run."
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", help="some benchmarks")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    parser.add_argument("--threads", type=int, help="threads of torch")
    parser.add_argument(
        "--busy", action="store_true", help="count this process's own time; with one thread"
    )
    parser.add_argument("--device", default="cpu", help="where to run, such as cuda")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the timings there too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw time over size")
    return parser.parse_args()


if __name__ == "__main__":
    main()
