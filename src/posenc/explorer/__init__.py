"""The explorer: one HTML page that shows positional encodings, whole and without a network."""

from dataclasses import dataclass
from html import escape

from posenc.explorer.bundling import page

__all__ = ["Explorer", "page", "show"]


@dataclass(frozen=True)
class Explorer:
    """The page in a frame of its own; a notebook displays it.

    The frame may run its script and save files, and can reach neither the notebook nor a network.
    """

    height: int = 900  #: of the frame, in pixels

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="posenc explorer" width="100%" height="{self.height}" '
            f'style="border:0" sandbox="allow-scripts allow-downloads" '
            f'allow="clipboard-write" srcdoc="{escape(page())}"></iframe>'
        )


def show(height: int = 900) -> Explorer:
    """The explorer, for the last line of a notebook's cell; its frame has so many pixels.

    Example:
        >>> show(700)
        Explorer(height=700)
    """
    return Explorer(height)
