"""Time over size, a panel for each family of cases.

``python -m benchmarks.plot REPORT PICTURE`` draws what an earlier run wrote by ``--json``.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Timing


def draw(timings: Sequence[Timing], path: Path) -> None:
    """Write the picture to ``path``; its ending says which format.

    Raises:
        ImportError: There is no matplotlib.
        ValueError: No case has a size.
    """
    try:
        from matplotlib import pyplot as plt

        from posenc.plots import growth
        from posenc.plots.style import look
    except ImportError as error:
        raise ImportError("A picture needs matplotlib: pip install posenc[bench].") from error
    families = list(dict.fromkeys(t.family for t in timings if t.family))
    if not families:
        raise ValueError("No case of this run has sizes to draw over. Run the benchmark 'growth'.")
    figure, panels = plt.subplots(
        *(2, len(families)),
        figsize=(6.4 * len(families), 7.6),
        squeeze=False,
        layout="constrained",
        facecolor=look("light").ground,
    )
    for family, (above, below) in zip(families, panels.T, strict=True):
        members = [t for t in timings if t.family == family]
        against = members[0].against
        times, ratios = (_by_size(members, each) for each in ("milliseconds", "times_base"))
        drawn = {
            "against": against if against in times else None,
            "dashed": [name for name in times if not name.startswith("posenc")],
        }
        growth(times, title=family, ax=above, **drawn)
        growth(ratios, ylabel=f"time (× {against})", ax=below, **drawn)
        below.get_legend().remove()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _by_size(timings: Sequence[Timing], quantity: str) -> dict[str, dict[float, float]]:
    """A quantity by contender and size."""
    found: dict[str, dict[float, float]] = {}
    for timing in timings:
        assert timing.size is not None
        found.setdefault(timing.name, {})[timing.size] = getattr(timing, quantity)
    return found


if __name__ == "__main__":
    report, picture = map(Path, sys.argv[1:])
    draw([Timing(**each) for each in json.loads(report.read_text())["timings"]], picture)
