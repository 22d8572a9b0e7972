"""What ``posenc encode`` prints: the numbers of a short text, or the summary of a file."""

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from posenc.cli.progress import Progress
from posenc.cli.rows import Measure
from posenc.cli.terminal import console, grid, number, shortened
from posenc.cli.writers import Batch, Plan

# Tokens that are printed; more would scroll away.
SHOWN = 24


def show(
    batch: Batch,
    parts: Callable[[Batch], tuple[Tensor, Tensor]],
    plan: Plan,
    found: Measure,
    progress: Progress,
) -> None:
    """Prints token, id, embedding, encoding and their sum for the first tokens of the text."""
    progress.stop()
    screen = console()
    components = max(2, (min(screen.width, 110) - 34) // 24)
    tokens = {number: token for token, number in plan.words.items()}
    embeddings, table = parts(batch)
    if plan.parameters["scale"] != "none":
        embeddings = batch.encoded - table
    rows, left = [], SHOWN
    for row, length in enumerate(batch.lengths.tolist()):
        for place in range(min(length, left)):
            number_of = int(batch.ids[row, place])
            rows.append(
                [
                    str(int(batch.lines[row])),
                    str(int(batch.starts[row]) + place),
                    tokens.get(number_of, ""),
                    str(number_of),
                    *(
                        vector(values[row, place], components)
                        for values in (embeddings, table, batch.encoded)
                    ),
                ]
            )
        left -= min(length, left)
    headers = ["line", "position", "token", "id", "embedding", "+ encoding", "= sum"]
    screen.print(grid(headers, rows, screen, left=(2, 4, 5, 6)))
    _notes(plan, found, len(rows), components, screen.print)


def _notes(
    plan: Plan, found: Measure, shown: int, components: int, say: Callable[[str], None]
) -> None:
    about = plan.parameters
    origin = "seeded random vectors" if about["embeddings"] == "random" else about["embeddings"]
    scaled = ", times sqrt(dim)" if about["scale"] != "none" else ""
    say(f"embeddings: {origin}{scaled}; encoding: {about['convention']}, base {about['base']:g}.")
    if shown < found.tokens:
        say(f"{shown} of {found.tokens} tokens are shown; --output FILE or --format csv gives all.")
    if components < plan.dim:
        say(f"{components - 1} of {plan.dim} dimensions are shown; --format csv or json gives all.")


def vector(values: Tensor, most: int) -> str:
    """Some numbers of a vector, in one cell."""
    return " ".join(shortened([number(v, 3) for v in values.tolist()], most))


def summary(output: Path, plan: Plan, found: Measure, seconds: float) -> None:
    """Prints what was written."""
    screen = console()
    cells = found.rows * found.longest
    shape = f"{found.tokens} vectors of {plan.dim}, not padded"
    if output.suffix in (".safetensors", ".npz"):
        padding = 100 * (cells - found.tokens) / cells
        shape = f"[{found.rows}, {found.longest}, {plan.dim}], {padding:.0f} % padding"
    lines = [
        ("sentences", f"{found.sentences:,}" + _continued(plan, found)),
        ("tokens", f"{found.tokens:,}" + _unknown(found)),
        ("vocabulary", f"{len(plan.words):,}"),
        ("encoded", f"{shape}, {plan.parameters['dtype']}"),
        ("file", size(output.stat().st_size)),
        ("time", f"{seconds:.1f} s, {found.tokens / seconds:,.0f} tokens/s"),
    ]
    screen.print(f"wrote {output}", style="bold")
    for name, value in lines:
        screen.print(f"  {name:<11}{value}")


def _continued(plan: Plan, found: Measure) -> str:
    if not found.split:
        return ""
    limit = plan.parameters["max_length"]
    return f" in {found.rows:,} rows: lines above {limit} tokens continue in the next row"


def _unknown(found: Measure) -> str:
    return f", {found.unknown:,} of them outside the vocabulary" if found.unknown else ""


def size(count: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size(950), size(1_400_000_000)
        ('950 B', '1.4 GB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
