"""What ``posenc encode`` prints: the numbers of a short text, or the summary of a file."""

from pathlib import Path

from rich.filesize import decimal
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.io.vectors import Batch
from posenc.cli.io.writers import Manifest
from posenc.cli.render.screen import console, number

SHOWN = 24
"""Tokens that are printed; more would scroll away."""

LETTERS = 14
"""Letters of a token that are printed."""

NUMBER = 7
"""Characters of a number and the blank behind it."""


def show(batch: Batch, encoding: Sinusoidal, manifest: Manifest) -> None:
    """Token, id, embedding, encoding and their sum of the first tokens."""
    screen, found, about = console(), manifest.found, manifest.parameters
    known, ids, positions = manifest.tokens(), batch.ids[:SHOWN], batch.positions[:SHOWN]
    words = [known.get(number, "") for number in ids.tolist()]
    words = [w if len(w) <= LETTERS else f"{w[: LETTERS - 1]}…" for w in words]
    lines = [str(row.line) for row in batch.rows for _ in row.ids]
    columns = {"line": lines} if found.sentences > 1 else {}
    columns |= {"position": list(map(str, positions.tolist())), "token": words}
    columns |= {"id": list(map(str, ids.tolist()))}
    told = list(zip(*columns.values(), strict=False))
    vectors = {
        "embedding": batch.embeddings * (encoding.factor or 1.0),
        "+ encoding": batch.table,
        "= sum": batch.values,
    }
    # Side by side where all dimensions fit so, otherwise one below the other.
    room = screen.room - sum(max(map(len, c)) + 2 for c in zip(columns, *told, strict=True))
    beside = 3 * (NUMBER * manifest.dim + 1) <= room + 2
    most = manifest.dim if NUMBER * manifest.dim <= room + 1 else max(1, (room - 1) // NUMBER)
    for names in [list(vectors)] if beside else [[name] for name in vectors]:
        headers = [*columns, *names]
        rows = [[*row, *(_shown(vectors[n][i], most) for n in names)] for i, row in enumerate(told)]
        screen.grid(headers, rows, [headers.index(name) for name in ("token", *names)])
    origin = "seeded random vectors" if about["embeddings"] == "random" else about["embeddings"]
    scaled = ", times sqrt(dim)" if about["scale"] != "none" else ""
    screen.print(
        f"embeddings: {origin}{scaled}; encoding: {about['convention']}, base {about['base']:g}."
    )
    if len(told) < found.tokens:
        screen.print(f"{len(told)} of {found.tokens} tokens; --output or --format csv gives all.")
    if most < manifest.dim:
        screen.print(f"{most} of {manifest.dim} dimensions; --format csv or json gives all.")


def _shown(vector: Tensor, most: int) -> str:
    numbers = " ".join(number(value, 3) for value in vector[:most].tolist())
    return numbers + " …" * (most < len(vector))


def summary(output: Path, manifest: Manifest, seconds: float) -> None:
    """What was written."""
    found, parts = manifest.found, []
    if found.rows > found.sentences:
        parts.append(f"{found.rows:,} rows, since long lines continue in the next")
    if found.unknown:
        parts.append(f"{found.unknown:,} words outside the vocabulary of {len(manifest.words):,}")
    told = ", ".join([*parts, decimal(output.stat().st_size), f"{seconds:.1f} s"])
    of = f"{found.tokens:,} vectors of {manifest.dim}, {manifest.parameters['dtype']}"
    print(f"wrote {output}: {of}, from {found.sentences:,} sentences; {told}")
