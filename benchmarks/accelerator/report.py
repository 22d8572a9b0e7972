"""What was found, as a page to read and as data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from benchmarks.accelerator.checks import Outcome
from benchmarks.harness import Timing


def write(
    folder: Path,
    facts: Mapping[str, str | int],
    outcomes: Sequence[Outcome],
    timings: Sequence[Timing],
    left_out: Mapping[str, str],
) -> None:
    """``accelerator.json`` and ``accelerator.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": dict(facts),
        "checks": [asdict(outcome) for outcome in outcomes],
        "timings": [asdict(timing) for timing in timings],
        "left_out": dict(left_out),
    }
    (folder / "accelerator.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = ["# One run on an accelerator", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    lines += _of_checks(outcomes) + _of_timings(timings)
    if left_out:
        lines += ["", "## Not measured", ""]
        lines += [f"- {name}: {why}" for name, why in left_out.items()]
    (folder / "accelerator.md").write_text("\n".join(lines) + "\n")


def _of_checks(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["", "## Is it right", "", "| checks | held | failed | left out |",
             "| --- | --- | --- | --- |"]  # fmt: skip
    sections = list(dict.fromkeys(outcome.section for outcome in outcomes))
    for section in sections:
        states = [outcome.state for outcome in outcomes if outcome.section == section]
        counts = (str(states.count(state)) for state in ("held", "failed", "left out"))
        lines.append(f"| {section} | {' | '.join(counts)} |")
    others = [outcome for outcome in outcomes if outcome.state != "held"]
    if others:
        lines += ["", *(f"- {o.state}: {o.section}, {o.name}: {o.told}" for o in others)]
    return lines


def _of_timings(timings: Sequence[Timing]) -> list[str]:
    lines = ["", "## How fast is it"]
    for case, some in groupby(timings, key=lambda timing: timing.case):
        rows = list(some)
        heads = f"| | time | × {rows[0].against} | × ours | of copy | MB |"
        lines += ["", f"**{case}**", "", heads, "| --- | --- | --- | --- | --- | --- |"]
        for t in rows:
            share = "–" if t.roofline is None else f"{100 * t.roofline:.0f} %"
            peak = "–" if t.megabytes is None else f"{t.megabytes:.0f}"
            lines.append(f"| {t.name} | {1e3 * t.milliseconds:.4g} µs | {t.times_base:.2f} | "
                         f"{t.times_ours:.2f} | {share} | {peak} |")  # fmt: skip
    return lines
