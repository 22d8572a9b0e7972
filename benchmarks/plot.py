"""Time over size, a panel for each family of cases."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Timing

MARKERS = "os^Dvp*X"


def draw(timings: Sequence[Timing], path: Path) -> None:
    """Write the picture to ``path``; its ending says which format.

    Raises:
        ImportError: There is no matplotlib.
        ValueError: No case has a size.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("A picture needs matplotlib: pip install posenc[bench].") from error
    families = list(dict.fromkeys(t.family for t in timings if t.family))
    if not families:
        raise ValueError("No case of this run has sizes to draw over. Run the benchmark 'growth'.")
    figure, panels = plt.subplots(
        2, len(families), figsize=(6.4 * len(families), 7.6), squeeze=False, layout="constrained"
    )
    for family, (above, below) in zip(families, panels.T, strict=True):
        members = [t for t in timings if t.family == family]
        for index, name in enumerate(dict.fromkeys(t.name for t in members)):
            line = [t for t in members if t.name == name]
            sizes = [t.size for t in line]
            style = {"marker": MARKERS[index % len(MARKERS)], "markersize": 5, "label": name}
            style["linestyle"] = "-" if name.startswith("posenc") else "--"
            if name == line[0].against:
                style |= {"linestyle": ":", "color": "black", "marker": "."}
            above.plot(sizes, [t.milliseconds for t in line], **style)
            below.plot(sizes, [t.times_base for t in line], **style)
        above.set(title=family, ylabel="milliseconds", xscale="log", yscale="log")
        below.set(xlabel="rows", ylabel=f"times {members[0].against}", xscale="log", yscale="log")
        below.yaxis.set_major_formatter("{x:g}")
        for panel in (above, below):
            panel.set_xscale("log", base=2)
            panel.grid(alpha=0.3)
        above.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
