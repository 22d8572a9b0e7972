"""Figures to files, with text that stays text."""

from typing import BinaryIO

import matplotlib as mpl
from matplotlib.figure import Figure


def save(figure: Figure, file: BinaryIO, kind: str) -> None:
    """Writes ``figure`` as ``png`` or ``svg``.

    Text in an SVG stays text: it can be searched, selected and read aloud. The same numbers give
    the same bytes: no date and no random names are written.

    Example:
        >>> import io
        >>> from posenc.plots import heatmap
        >>> file = io.BytesIO()
        >>> save(heatmap([[0.0, 1.0]]).figure, file, "svg")
        >>> b"dimension (index)" in file.getvalue()
        True
    """
    about = {"Date": None} if kind == "svg" else {}
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "posenc"}):
        figure.savefig(
            file,
            format=kind,
            metadata=about,
            facecolor=figure.get_facecolor(),
            bbox_inches=None,
        )
