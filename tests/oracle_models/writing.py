"""``families.json``: what classes say and what models showed, laid over what it has."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from tests.oracle_models import classes

PATH = Path(__file__).parents[2] / "src" / "posenc" / "interop" / "families.json"

MEASURED = ("pairing", "sections", "scale", "window")
"""Facts that models show; where none ran, they stay as they are."""


def updated(
    facts: Mapping[str, Any], said: Mapping[str, Any], row: Mapping[str, Any]
) -> dict[str, Any]:
    """The facts of one type: of its class, of its models, and what neither says."""
    seen = {name: value for name, value in row["facts"].items() if name in MEASURED}
    found = {**facts, **said, **seen}
    found["defaults"] = {**facts.get("defaults", {}), **said["defaults"]}
    if "theta" in facts:
        found["theta"] = facts["theta"]
    if row["status"] in ("differs", "failed", "refused"):
        found.pop("verified", None)
    return found | ({"verified": True} if row["status"] == "agrees" else {})


def write(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the file, one type a line."""
    file = json.loads(PATH.read_text(encoding="utf-8"))
    said = classes.said()
    types = {
        name: updated(file["types"].get(name, {}), said[name], rows[name])
        if name in said
        else file["types"][name]
        for name in sorted({*file["types"], *said})
    }
    file["transformers"] = transformers.__version__
    PATH.write_text(written({**file, "types": types}), encoding="utf-8")


def written(file: Mapping[str, Any]) -> str:
    """The text of the file: each entry of ``diffusers`` and ``types`` on a line of its own."""

    def lines(entries: Mapping[str, Any]) -> str:
        rows = (f"{_json(name)}: {_json(entry)}" for name, entry in entries.items())
        return "{\n" + ",\n".join(rows) + "\n}"

    parts = {name: lines(value) if name in ("diffusers", "types") else _json(value)
             for name, value in file.items()}  # fmt: skip
    return "{" + ",\n".join(f"{_json(name)}: {value}" for name, value in parts.items()) + "}\n"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
