"""Figures to files, with text that stays text."""

from typing import TYPE_CHECKING, BinaryIO

import matplotlib as mpl
from matplotlib.figure import Figure

from posenc.arguments import check_whole

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType


def save(figure: Figure, file: BinaryIO, kind: str, *, dpi: int | None = None) -> None:
    """Writes ``figure`` as ``png``, ``svg`` or ``pdf``.

    Text stays text: it can be searched, selected and read aloud. The same numbers give the same
    bytes: no date and no random names are written.

    Args:
        figure: What is written.
        file: Takes bytes.
        kind: The format.
        dpi: Pixels per inch of a ``png``; those of the figure if not given.

    Raises:
        ValueError: There is no such format here, or ``dpi`` is no whole number from 1 on.

    Example:
        >>> import io
        >>> from posenc.plots import heatmap
        >>> file = io.BytesIO()
        >>> save(heatmap([[0.0, 1.0]]).figure, file, "svg")
        >>> b"dimension (index)" in file.getvalue()
        True
    """
    if kind not in DATES:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(DATES)}.")
    if dpi is not None:
        check_whole(dpi=dpi)
    with mpl.rc_context(TEXT):
        figure.savefig(
            file,
            format=kind,
            dpi="figure" if dpi is None else dpi,
            metadata=DATES[kind],
            facecolor=figure.get_facecolor(),
            bbox_inches=None,
        )


DATES = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The formats, and what each calls the date that is left out."""

TEXT: "dict[RcKeyType, object]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "posenc",
    "pdf.fonttype": 42,
}
"""Letters as letters: in an SVG by name, in a PDF with the font beside them."""
