"""A file or folder appears whole under its name, or not at all."""

import contextlib
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from posenc.cli.errors import UserError


def check(path: Path, *suffixes: str, **read: Path | None) -> None:
    """Refuses a name of another kind, or one that is read: ``read`` has each by its option."""
    if suffixes and path.suffix not in suffixes:
        raise UserError(f"{path}: the name must end in {' or '.join(suffixes)}")
    for name, source in read.items():
        if source is not None and path.resolve() == source.resolve():
            raise UserError(f"{path} is also the {name}; give the output another name")


@contextlib.contextmanager
def placed(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the name ``path`` when the block ends well."""
    target = Path(os.path.realpath(path))
    growing = target.with_name(f".posenc-{secrets.token_hex(8)}.part")
    try:
        with growing.open("x+b") as file:
            yield file  # type: ignore[misc]
        os.replace(growing, target)
    except OSError as error:  # that of a full disk has no name
        error.filename = error.filename or str(path)
        raise
    finally:
        growing.unlink(missing_ok=True)


@contextlib.contextmanager
def placed_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes the name ``path`` when the block ends well."""
    if path.exists() and (path.is_file() or any(path.iterdir())):
        raise UserError(f"{path} is there already; give the name of a new or an empty folder")
    with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".posenc-") as growing:
        filled = Path(growing) / "filled"
        filled.mkdir()
        yield filled
        os.replace(filled, path)


def config_in(path: Path) -> Path:
    """The configuration itself, where the folder of a model may be given."""
    return path / "config.json" if path.is_dir() else path


def check_figure(output: Path | None, dpi: int | None = None) -> None:
    """Refuses a figure that cannot be written; matplotlib is ready to draw one afterwards."""
    if output is None:
        return
    check(output, ".png", ".svg", ".pdf")
    if dpi is not None and (output.suffix != ".png" or not 20 <= dpi <= 2400):
        raise UserError(f"--dpi is {dpi}; it counts pixels of a .png, from 20 to 2400 an inch")
    import matplotlib

    matplotlib.use("Agg")  # a file needs no display


def write_figure(axes: Any, output: Path, dpi: int | None = None, form: str = "text") -> None:
    """Writes the figure of ``axes``, and says so; beside a document on standard error."""
    from matplotlib import pyplot

    from posenc.plots import save

    with placed(output) as file:
        save(axes.figure, file, output.suffix[1:], dpi=dpi)  # type: ignore[arg-type]
    pyplot.close(axes.figure)
    print(f"wrote {output}", file=sys.stdout if form == "text" else sys.stderr)
