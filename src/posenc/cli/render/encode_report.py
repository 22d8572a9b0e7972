"""What ``posenc encode`` prints: the numbers of a short text, or the summary of a file."""

from pathlib import Path

from rich.filesize import decimal

from posenc.cli.io.vectors import Batch, Encoded
from posenc.cli.io.writers import Manifest
from posenc.cli.render.screen import console, number

SHOWN = 24
"""Tokens that are printed; more would scroll away."""

LETTERS = 14
"""Letters of a token that are printed."""


def show(batch: Batch, encoded: Encoded, manifest: Manifest) -> None:
    """Token, id, embedding, encoding and their sum of the first tokens."""
    screen, found, about = console(), manifest.found, manifest.parameters
    ids, positions = batch.ids[:SHOWN], batch.positions[:SHOWN]
    x, table = encoded.parts(ids, positions)
    words = manifest.tokens()
    letters = min(LETTERS, max(len(words.get(id_, "")) for id_ in ids.tolist()))
    # Beside other columns and gaps; a number has six characters and a blank, an ellipsis two.
    room = (screen.room - letters - (30 if found.sentences > 1 else 24)) // 3
    most = manifest.dim if 7 * manifest.dim <= room + 1 else max(1, (room - 1) // 7)
    lines = [row.line for row in batch.rows for _ in row.ids]
    rows = []
    for index, (id_, position) in enumerate(zip(ids.tolist(), positions.tolist(), strict=True)):
        token = words.get(id_, "")
        token = token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…"
        vectors = (
            " ".join(number(v, 3) for v in each[index, :most].tolist())
            + " …" * (most < manifest.dim)
            for each in (x * (encoded.encoding.factor or 1.0), table, batch.values)
        )
        row = [str(lines[index]), str(position), token, str(id_), *vectors]
        rows.append(row if found.sentences > 1 else row[1:])
    headers = ["line", "position", "token", "id", "embedding", "+ encoding", "= sum"]
    headers = headers if found.sentences > 1 else headers[1:]
    screen.grid(headers, rows, [headers.index(name) for name in ("token", *headers[-3:])])
    origin = "seeded random vectors" if about["embeddings"] == "random" else about["embeddings"]
    scaled = ", times sqrt(dim)" if about["scale"] != "none" else ""
    screen.print(
        f"embeddings: {origin}{scaled}; encoding: {about['convention']}, base {about['base']:g}."
    )
    if len(rows) < found.tokens:
        screen.print(f"{len(rows)} of {found.tokens} tokens; --output or --format csv gives all.")
    if most < manifest.dim:
        screen.print(f"{most} of {manifest.dim} dimensions; --format csv or json gives all.")


def summary(output: Path, manifest: Manifest, seconds: float) -> None:
    """What was written."""
    found, screen = manifest.found, console()
    sentences, tokens = f"{found.sentences:,}", f"{found.tokens:,}"
    if found.rows > found.sentences:
        sentences += f" in {found.rows:,} rows: longer lines continue in the next row"
    if found.unknown:
        tokens += f", {found.unknown:,} of them outside the vocabulary"
    vectors = f"{found.tokens:,} vectors of {manifest.dim}"
    if manifest.padded:
        share = 1 - found.tokens / (found.rows * found.longest)
        vectors += f" in {found.rows:,} rows of {found.longest}, {share:.0%} padding"
    screen.print(f"wrote {output}", style="bold")
    for name, value in {
        "sentences": sentences,
        "tokens": tokens,
        "vocabulary": f"{len(manifest.words):,}",
        "encoded": f"{vectors}, {manifest.parameters['dtype']}",
        "file": decimal(output.stat().st_size),
        "time": f"{seconds:.1f} s, {found.tokens / seconds:,.0f} tokens/s",
    }.items():
        screen.print(f"  {name:<11}{value}")
