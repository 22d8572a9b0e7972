"""What ``posenc encode`` prints: the numbers of a short text, or the summary of a file."""

from collections.abc import Sequence
from pathlib import Path

from posenc.cli.io.batches import Batches
from posenc.cli.io.disk import size
from posenc.cli.io.rows import Measure
from posenc.cli.io.writers import Batch, Manifest
from posenc.cli.io.writers.sizes import contents
from posenc.cli.render.grids import GAP, number, print_grid, widths_of
from posenc.cli.render.screen import console

# Tokens that are printed; more would scroll away.
SHOWN = 24

# Letters of a token that are printed.
LETTERS = 14


def show(batch: Batch, batches: Batches, manifest: Manifest, found: Measure) -> None:
    """Prints token, id, embedding, encoding and their sum for the first tokens of the text."""
    screen = console()
    ids, positions = batch.ids[:SHOWN], batch.positions[:SHOWN]
    embeddings, table = batches.parts(ids, positions)
    parts = (embeddings * (batches.encoding.factor or 1.0), table, batch.values[:SHOWN])
    vectors = [[[number(v, 3) for v in row] for row in part.tolist()] for part in parts]
    names = ("embedding", "+ encoding", "= sum")
    headers, rows = _tokens(batch, manifest, several=found.sentences > 1)
    used = sum(width + GAP for width in widths_of([headers, *rows]))
    most = _fitting(vectors, names, screen.room - used)
    for row, texts in zip(rows, zip(*vectors, strict=True), strict=True):
        row += [_cut(text, most) for text in texts]
    words = len(headers)
    left = (*(index for index, name in enumerate(headers) if name == "token"),)
    print_grid(screen, [*headers, *names], rows, left=(*left, words, words + 1, words + 2))
    for line in _notes(manifest, found, len(rows), most):
        screen.print(line)


def _tokens(
    batch: Batch, manifest: Manifest, *, several: bool
) -> tuple[list[str], list[list[str]]]:
    """Where each token stands and what it is; the line only where there are several."""
    tokens = {number_of: token for token, number_of in manifest.words.items()}
    lines = batch.lines.repeat_interleave(batch.lengths).tolist()[:SHOWN]
    positions, ids = batch.positions.tolist()[:SHOWN], batch.ids.tolist()[:SHOWN]
    rows = []
    for line, position, id_ in zip(lines, positions, ids, strict=True):
        token = tokens.get(id_, "")
        token = token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…"
        rows.append([*([str(line)] if several else []), str(position), token, str(id_)])
    return [*(["line"] if several else []), "position", "token", "id"], rows


def _fitting(vectors: Sequence[list[list[str]]], names: Sequence[str], room: int) -> int:
    """How many numbers of each vector fit beside each other into ``room``; one at least."""
    width = len(vectors[0][0])
    for most in range(width, 1, -1):
        needed = sum(
            max(len(name), *(len(_cut(row, most)) for row in part))
            for name, part in zip(names, vectors, strict=True)
        )
        if needed + GAP * (len(names) - 1) <= room:
            return most
    return 1


def _cut(numbers: Sequence[str], most: int) -> str:
    return " ".join([*numbers[:most], *(["…"] if most < len(numbers) else [])])


def _notes(manifest: Manifest, found: Measure, shown: int, most: int) -> list[str]:
    about = manifest.parameters
    origin = "seeded random vectors" if about["embeddings"] == "random" else about["embeddings"]
    scaled = ", times sqrt(dim)" if about["scale"] != "none" else ""
    lines = [
        f"embeddings: {origin}{scaled}; encoding: {about['convention']}, base {about['base']:g}."
    ]
    if shown < found.tokens:
        lines.append(f"{shown} of {found.tokens} tokens; --output FILE or --format csv gives all.")
    if most < manifest.dim:
        lines.append(f"{most} of {manifest.dim} dimensions; --format csv or json gives all.")
    return lines


def summary(output: Path, manifest: Manifest, found: Measure, seconds: float) -> None:
    """Prints what was written."""
    screen = console()
    lines = [
        ("sentences", f"{found.sentences:,}" + _continued(manifest, found)),
        ("tokens", f"{found.tokens:,}" + _unknown(found)),
        ("vocabulary", f"{len(manifest.words):,}"),
        ("encoded", f"{contents(manifest)}, {manifest.parameters['dtype']}"),
        ("file", size(output.stat().st_size)),
        ("time", f"{seconds:.1f} s, {found.tokens / seconds:,.0f} tokens/s"),
    ]
    screen.print(f"wrote {output}", style="bold")
    for name, value in lines:
        screen.print(f"  {name:<11}{value}")


def _continued(manifest: Manifest, found: Measure) -> str:
    if not found.split:
        return ""
    limit = manifest.parameters["max_length"]
    return f" in {found.rows:,} rows: lines above {limit} tokens continue in the next row"


def _unknown(found: Measure) -> str:
    return f", {found.unknown:,} of them outside the vocabulary" if found.unknown else ""
