"""A report as Markdown."""

from collections.abc import Mapping

from posenc.lab.comparison import Comparison, sentences
from posenc.lab.report.sheets import Sheet, facts, sheets


def as_markdown(comparison: Comparison, pictures: Mapping[str, str] | None = None) -> str:
    """The summary in words, then the tables of each task; ``pictures`` stand before its tables."""
    grid = comparison.grid
    parts = [f"# {grid.name}", *([grid.about] if grid.about else [])]
    parts.append("\n".join(f"- {name}: {said}" for name, said in facts(comparison)))
    for task in comparison.tasks:
        parts += [f"## {task.title}", task.task.task.about]
        parts.append("\n".join(f"- {said}" for said in sentences(task)))
        if pictures is not None:
            parts.append(pictures[task.title])
        parts += [_table(sheet) for sheet in sheets(task)]
    if comparison.failures:
        failed = "\n".join(f"- {run}: {said}" for run, said in comparison.failures.items())
        parts += ["## Runs that failed", failed]
    return "\n\n".join(parts) + "\n"


def _table(sheet: Sheet) -> str:
    lines = [sheet.header, tuple("---" for _ in sheet.header), *sheet.rows]
    rows = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
    return f"### {sheet.title}\n\n{rows}\n\n{sheet.note}"


def _cell(word: str) -> str:
    return word.replace("|", "\\|").replace("\n", " ")
