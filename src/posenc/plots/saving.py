"""Figures to files, with text that stays text."""

from typing import Any, BinaryIO

import matplotlib as mpl
from matplotlib.figure import Figure

DATES = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The formats, and what each calls the date that is left out."""

TEXT: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "posenc", "pdf.fonttype": 42}
"""Letters as letters: in an SVG by name, in a PDF with the font beside them."""


def save(figure: Figure, file: BinaryIO, kind: str, *, dpi: int | None = None) -> None:
    """Writes ``figure`` as ``png``, ``svg`` or ``pdf``, with text that can be searched.

    The same numbers give the same bytes: no date and no random names are written.

    Args:
        figure: What is written.
        file: Takes bytes.
        kind: The format.
        dpi: Pixels per inch of a ``png``; those of the figure if not given.

    Example:
        >>> import io
        >>> from posenc.plots import heatmap
        >>> file = io.BytesIO()
        >>> save(heatmap([[0.0, 1.0]]).figure, file, "svg")
        >>> b"dimension (index)" in file.getvalue()
        True
    """
    if kind not in DATES:
        raise ValueError(f"kind is {kind!r}; expected one of {', '.join(DATES)}.")
    shown = {"metadata": DATES[kind], "facecolor": figure.get_facecolor(), "bbox_inches": None}
    with mpl.rc_context(TEXT):
        figure.savefig(file, format=kind, dpi="figure" if dpi is None else dpi, **shown)
