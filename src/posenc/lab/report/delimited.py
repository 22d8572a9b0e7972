"""The numbers of a report as CSV: a row for each task, encoding, length and seed."""

import csv
import io

from posenc.lab.comparison import Comparison

HEADER = (
    "task", "model", "encoding", "length", "trained_length", "seed", "score", "reported", "fits",
    "diverged", "middle", "low", "high", "place", "learning_rate",
)  # fmt: skip


def as_csv(comparison: Comparison) -> str:
    """All of them; ``middle``, ``low`` and ``high`` are of all seeds together."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for task in comparison.tasks:
        for each in task.encodings.values():
            for length, by_seed in sorted(each.scores.items()):
                middle = each.middle.get(length)
                ends = ("", "", "") if middle is None else (middle.value, middle.low, middle.high)
                for (seed, score), fits in zip(by_seed.items(), each.fits, strict=True):
                    writer.writerow(
                        (
                            task.task.name, task.model, each.name, length, task.task.task.trained,
                            seed, score, each.reported.get(length, {}).get(seed, ""), int(fits),
                            int(seed in each.diverged), *ends, task.ranks.get(each.name, ""),
                            each.rate,
                        )
                    )  # fmt: skip
    return text.getvalue()
