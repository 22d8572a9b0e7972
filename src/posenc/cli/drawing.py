"""The work of ``posenc heatmap`` and ``posenc curves``."""

import math
from collections.abc import Sequence

from torch import Tensor

from posenc import Sinusoidal
from posenc.cli import terminal_pictures
from posenc.cli.atomic import atomic, check
from posenc.cli.curves import Curves
from posenc.cli.errors import UserError
from posenc.cli.heatmap import Heatmap
from posenc.cli.table import Table
from posenc.cli.table_printing import print_columns
from posenc.cli.terminal import console
from posenc.positions import consecutive


def heatmap(arguments: Heatmap) -> None:
    """Runs the command ``heatmap``."""
    encoding = _encoding(arguments)
    if not 0 <= arguments.first_dimension < arguments.dim:
        raise UserError(
            f"--first-dimension is {arguments.first_dimension}; it must be one of "
            f"0 … {arguments.dim - 1}"
        )
    if _as_numbers(arguments, range(arguments.dim)):
        return
    if arguments.output is None:
        # Only what the terminal has room for is computed, however long the table is.
        terminal_pictures.heatmap(encoding, arguments)
        return
    from posenc.plots import heatmap as draw

    kind = _kind(arguments)
    table = _table(encoding, arguments)
    _save(
        draw(table, start=arguments.start, title=_title(arguments), theme=arguments.theme),
        arguments,
        kind,
    )


def curves(arguments: Curves) -> None:
    """Runs the command ``curves``."""
    encoding = _encoding(arguments)
    kind = _kind(arguments) if arguments.output else ""
    chosen = list(arguments.dimensions) or _spread(arguments.dim)
    if _as_numbers(arguments, chosen):
        return
    labels = [_named(encoding, index) for index in chosen]
    if not kind:
        terminal_pictures.curves(encoding, arguments, chosen, labels)
        return
    from posenc.plots import curves as draw

    axes = draw(
        _table(encoding, arguments),
        dimensions=chosen,
        labels=labels,
        start=arguments.start,
        title=_title(arguments),
        theme=arguments.theme,
    )
    _save(axes, arguments, kind)


def _encoding(arguments: Heatmap | Curves) -> Sinusoidal:
    if arguments.length < 1:
        raise UserError(f"--length is {arguments.length}; it must be at least 1")
    return Sinusoidal(arguments.dim, arguments.base, arguments.convention)


def _as_numbers(arguments: Heatmap | Curves, columns: Sequence[int]) -> bool:
    """Prints what would be drawn as csv or json, if that is asked for."""
    if arguments.format == "text":
        return False
    if arguments.output is not None:
        raise UserError("--output draws and --format prints; give one of them")
    print_columns(
        Table(
            arguments.length,
            arguments.dim,
            arguments.base,
            arguments.convention,
            arguments.start,
            format=arguments.format,
        ),
        columns,
    )
    return True


def _table(encoding: Sinusoidal, arguments: Heatmap | Curves) -> Tensor:
    return encoding.table(consecutive(arguments.length, start=arguments.start))


def _spread(dim: int) -> Sequence[int]:
    step = 1 if dim <= 6 else -(-dim // 12) * 2
    return range(0, dim, step)


def _named(encoding: Sinusoidal, index: int) -> str:
    """What a curve is: its dimension, sine or cosine, and its wavelength in positions."""
    channel = encoding.convention.channel(index, encoding.dim, encoding.base)
    if not channel.frequency:
        return f"{index} zero"
    return f"{index} {channel.function}, wavelength {math.tau / channel.frequency:.4g}"


def _title(arguments: Heatmap | Curves) -> str:
    return (
        f"Sinusoidal, {arguments.convention}: {arguments.length} positions, "
        f"d = {arguments.dim}, n = {arguments.base:g}"
    )


def _kind(arguments: Heatmap | Curves) -> str:
    output = arguments.output
    assert output is not None
    if output.suffix not in (".png", ".svg"):
        raise UserError(f"{output}: the name must end in .png or .svg")
    check(output)
    try:
        import matplotlib
    except ImportError:
        raise UserError(
            "matplotlib is missing; install it with pip install posenc[plots]"
        ) from None
    matplotlib.use("Agg")  # A file needs no display.
    return output.suffix[1:]


def _save(axes, arguments: Heatmap | Curves, kind: str) -> None:
    from posenc.plots import save

    assert arguments.output is not None
    with atomic(arguments.output) as file:
        save(axes.figure, file, kind)
    console().print(f"wrote {arguments.output}")
