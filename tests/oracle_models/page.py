"""``docs/models.md``: what each model type does with positions, and how that is known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.interop.fields import names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"

HEAD = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")

STATES = {
    "agrees": "verified",
    "composite": "parts",
    "not run": "read",
    "told": "in words",
    "refused": "refused",
}


def write(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the page; no type may be left out or misread."""
    import transformers

    if wrong := [name for name in names() if rows[name]["status"] not in STATES]:
        raise ValueError(f"These types are misread: {wrong}.")
    states = {name: _state(rows[name]) for name in names()}
    kinds = list(dict.fromkeys([*STATES.values(), "not read"]))
    counts = "\n".join(f"| {k} | {list(states.values()).count(k)} |" for k in kinds)
    lines = [
        f"| `{name}` | {states[name]} | {_cell(rows[name]['does'])} | {_why(rows[name])} |"
        for name in names()
    ]
    head = HEAD.replace("VERSION", transformers.__version__).replace("COUNTS", counts)
    PAGE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _state(row: Mapping[str, Any]) -> str:
    first = row["does"].split("; ")[0]  # what its parts do comes after
    unread = row["status"] == "told" and "not read here" in first
    return "not read" if unread else STATES[row["status"]]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")[:160]


def _why(row: Mapping[str, Any]) -> str:
    told = row["status"] in ("agrees", "composite", "told")
    return "" if told else _cell(row["why"].removeprefix("ValueError: "))
