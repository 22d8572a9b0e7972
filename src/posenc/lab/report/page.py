"""A report as one HTML page that needs nothing else: no network, no other file."""

from html import escape
from importlib.resources import files

from posenc.lab.comparison import Comparison, TaskComparison, sentences
from posenc.lab.report.figures import figures, variables
from posenc.lab.report.sheets import Sheet, facts, sheets

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
:root[data-theme="light"] {{ {light}; color-scheme: light }}
:root[data-theme="dark"] {{ {dark}; color-scheme: dark }}
{style}</style>
</head>
<body>
<header>
<button id="theme" type="button" aria-label="Light or dark ground">◐</button>
<h1>{title}</h1>
{about}
<dl>{facts}</dl>
</header>
<main>
<section aria-labelledby="summary">
<h2 id="summary">What the numbers say</h2>
{summary}
</section>
{tasks}
{failures}
</main>
<script>{script}</script>
</body>
</html>
"""

SCRIPT = """
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});
"""


def as_html(comparison: Comparison) -> str:
    """The page: a summary in words, then figures and tables of each task."""
    grid = comparison.grid
    style = files("posenc.lab.report").joinpath("page.css").read_text(encoding="utf-8")
    return PAGE.format(
        title=escape(f"posenc lab: {grid.name}"),
        light=variables("light"),
        dark=variables("dark"),
        style=style,
        script=SCRIPT,
        about=f"<p>{escape(grid.about)}</p>" if grid.about else "",
        facts="".join(
            f"<dt>{escape(name)}</dt><dd>{escape(said)}</dd>" for name, said in facts(comparison)
        ),
        summary="\n".join(_summary(task, n) for n, task in enumerate(comparison.tasks)),
        tasks="\n".join(_task(task, n) for n, task in enumerate(comparison.tasks)),
        failures=_failures(comparison),
    )


def _summary(task: TaskComparison, index: int) -> str:
    said = "".join(f"<li>{escape(each)}</li>" for each in sentences(task))
    return f'<h3><a href="#task-{index}">{escape(task.title)}</a></h3><ul>{said}</ul>'


def _task(task: TaskComparison, index: int) -> str:
    drawn = "\n".join(
        f'<figure role="img" aria-label="{escape(said)}">{svg}'
        f"<figcaption>{escape(said[0].upper() + said[1:])}.</figcaption></figure>"
        for said, svg in figures(task, index).items()
    )
    first, *others = sheets(task)
    tables = "\n".join(
        f"<details><summary>{escape(sheet.title)}</summary>{_table(sheet)}</details>"
        for sheet in others
    )
    return (
        f'<section aria-labelledby="task-{index}"><h2 id="task-{index}">{escape(task.title)}</h2>'
        f"<p>{escape(task.task.task.about)}</p>{_table(first)}"
        f'<div class="figures">{drawn}</div>{tables}</section>'
    )


def _table(sheet: Sheet) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in sheet.header)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(word)}</td>" for word in row[1:])
        + "</tr>"
        for row in sheet.rows
    )
    return (
        f'<div class="table" tabindex="0" role="group" aria-label="{escape(sheet.title)}"><table>'
        f"<caption>{escape(sheet.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="note">{escape(sheet.note)}</p>'
    )


def _failures(comparison: Comparison) -> str:
    if not comparison.failures:
        return ""
    said = "".join(
        f"<li>{escape(run)}: <code>{escape(each)}</code></li>"
        for run, each in comparison.failures.items()
    )
    return f"<section><h2>Runs that failed</h2><ul>{said}</ul></section>"
