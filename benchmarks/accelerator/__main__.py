"""Run everything that needs a card: checks first, then speed; write what was found.

    python -m benchmarks.accelerator [--out FOLDER] [--minutes 12]
    python -m benchmarks.accelerator --tiny     # no card: Triton's interpreter, tiny sizes

It needs no network, and no package but torch; peers and the encodings of the test suite take part
where they are installed. ``accelerator.md`` and ``accelerator.json`` in the folder say what was
found, good or bad, and what was left out for want of time or of a package.
"""

import argparse
import os
import sys
import time
from pathlib import Path


def main() -> None:
    options = _options()
    if options.tiny:  # read by both when they are first imported
        os.environ.update(TRITON_INTERPRET="1", TORCHDYNAMO_DISABLE="1")

    import torch

    from benchmarks.accelerator import checks, report, speed, stand_in
    from benchmarks.harness import machine

    if options.tiny:
        stand_in.pose_as_an_accelerator()
        torch.set_num_threads(1)
    elif not torch.cuda.is_available():
        sys.exit("There is no CUDA or ROCm device. Try --tiny for a run on the interpreter.")
    device = torch.device("cpu" if options.tiny else options.device)
    begin = time.monotonic()
    deadline = begin + 60 * options.minutes
    outcomes = list(checks.outcomes(device, options.tiny, begin + 30 * options.minutes))
    with torch.device(device):
        torch.set_default_device(device)
        timings, left_out = speed.timings(options.tiny, deadline)
        facts = machine() | stand_in.facts(device, options.tiny)
    torch.set_default_device(None)
    facts["seconds"] = round(time.monotonic() - begin)
    report.write(options.out, facts, outcomes, timings, left_out)
    failed = sum(outcome.state == "failed" for outcome in outcomes)
    print(f"{len(outcomes)} checks, {failed} failed; {options.out / 'accelerator.md'}")
    sys.exit(1 if failed else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator", description="Run everything that needs a card."
    )
    parser.add_argument("--tiny", action="store_true", help="on the CPU, with the interpreter")
    parser.add_argument("--device", default="cuda", help="which card")
    parser.add_argument("--minutes", type=float, default=11.0, help="when to stop")
    parser.add_argument("--out", type=Path, default=Path(), help="where to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
