"""A comparison as one offline page, as Markdown and as CSV: the same numbers in each."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from posenc.lab import kept
from posenc.lab.comparison import Comparison
from posenc.lab.report.text import facts, sentences, sheets
from posenc.lab.store import whole


def write(comparison: Comparison, path: Path) -> list[Path]:
    """The page at ``path``, with Markdown and CSV of the same name beside it; all three paths."""
    made = {
        path: as_html(comparison),
        path.with_suffix(".md"): as_markdown(comparison),
        path.with_suffix(".csv"): as_csv(comparison),
    }
    for each, text in made.items():
        with whole(each) as file:
            file.write(text.encode())
    return list(made)


def as_html(comparison: Comparison) -> str:
    """The page: a summary in words, then figures and tables of each task."""
    from posenc.lab.report.figures import colors, figures  # matplotlib is slow to load

    return _filled("page.html", comparison, figures=figures, colors=colors)


def as_markdown(
    comparison: Comparison, pictures: Mapping[str, str] | None = None, most: int | None = None
) -> str:
    """The summary in words, then pictures and tables of each task, with ``most`` rows in each."""
    return _filled("page.md", comparison, pictures=pictures or {}, most=most)


def as_csv(comparison: Comparison) -> str:
    """A row for each task, encoding, length and seed; ``middle`` and its ends are of all seeds."""
    rows = []
    for task in comparison.tasks:
        for name, each in task.encodings.items():
            fits = dict(zip(each.seeds, each.fits, strict=True))
            for length, by_seed in sorted(each.scores.items()):
                middle = each.middle.get(length)
                rows += [
                    {
                        "task": task.task.name,
                        "model": task.model,
                        "encoding": name,
                        "length": length,
                        "trained_length": task.task.task.trained,
                        "seed": seed,
                        "score": score,
                        "reported": each.reported.get(length, {}).get(seed),
                        "fits": int(fits[seed]),
                        "diverged": int(seed in each.diverged),
                        "middle": middle and middle.value,
                        "low": middle and middle.low,
                        "high": middle and middle.high,
                        "place": task.ranks.get(name),
                        "learning_rate": each.rate,
                    }
                    for seed, score in by_seed.items()
                ]
    return kept.as_csv(rows)


def _filled(name: str, comparison: Comparison, **more: object) -> str:
    told = {"comparison": comparison, "facts": facts, "sheets": sheets, "sentences": sentences}
    return _pages().get_template(name).render(told, **more)


@cache
def _pages() -> Environment:
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: str(name).endswith(".html"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    pages.filters["cell"] = lambda word: word.replace("|", "\\|").replace("\n", " ")
    return pages
