"""``docs/models.md``: what each model type does with positions, and how that is known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.interop.families import names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"

HEAD = """# Models

What `posenc.interop.huggingface.positional_setup` and `posenc inspect` make of each model type that
transformers {version} registers, given the configuration that its class has by default.

```python
>>> from posenc.interop.huggingface import positional_setup
>>> setup = positional_setup({{"model_type": "gemma3"}})
>>> [(layer.layer_type, layer.window) for layer in setup["text"].layers[4:6]]
[('sliding_attention', 4096), ('full_attention', None)]
>>> setup["text"].layers[5].positional.queries_keys[0]
Rotary(Geometric(dim=256, base=1000000.0))
>>> setup["text"].certainty
'verified'

```

**Verified** types were run: a small random model of the type does one pass over a few tokens, and
the functions that rotate are asked about every channel (`posenc.interop.oracle`). Frequencies,
pairs, factors, axes, scales and windows of every layer are compared with what is read, and once
more with a random rope dictionary; tables by their shape or their values. A test runs others of
them with every commit. All of them, with this page and `families.json` as the result:

```sh
python -m tests.oracle_models --fresh --write
```

Of the other types, **parts** are composed of types with lines of their own; **read** says what the
code says, but was not run, for the reason given; **in words** stands where no object of the library
is what the model does, or none was held against it: then `positional_setup` gives the words, and
`rotary_from_config` refuses. *Not read* means what it says.

Files are read without transformers. Where a file leaves out a field that only the class of its
model fills in (`needs` in `families.json`), transformers is asked, and has to be installed.

| how it is known | types |
| --- | --- |
{counts}

| model type | how it is known | what it does with positions | why not verified |
| --- | --- | --- | --- |
"""

STATES = {
    "agrees": "verified",
    "composite": "parts",
    "not run": "read",
    "told": "in words",
    "refused": "refused",
}


def write(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the page.

    Raises:
        ValueError: A type was not run, or is misread.
    """
    import transformers

    missing = [name for name in names() if name not in rows]
    wrong = [name for name, row in rows.items() if row["status"] not in STATES]
    if missing or wrong:
        raise ValueError(f"{len(missing)} types were not run, and these are misread: {wrong}.")
    states = {name: _state(rows[name]) for name in names()}
    kinds = list(dict.fromkeys([*STATES.values(), "not read"]))
    counts = "\n".join(f"| {k} | {list(states.values()).count(k)} |" for k in kinds)
    lines = [
        f"| `{name}` | {states[name]} | {_cell(row['does'])} | {_why(row)} |"
        for name in names()
        for row in [rows[name]]
    ]
    head = HEAD.format(version=transformers.__version__, counts=counts)
    PAGE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _state(row: Mapping[str, Any]) -> str:
    first = row["does"].split("; ")[0]  # what its parts do comes after
    if row["status"] == "told" and "not read here" in first:
        return "not read"
    return STATES[row["status"]]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")[:160]


def _why(row: Mapping[str, Any]) -> str:
    if row["status"] in ("agrees", "composite", "told"):
        return ""
    if row["status"] == "refused":
        return _cell(row["why"].removeprefix("ValueError: "))
    return _cell(row["why"])
