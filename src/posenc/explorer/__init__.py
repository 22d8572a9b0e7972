"""The explorer: one HTML page that shows positional encodings, whole and without a network."""

from posenc.explorer.bundling import page
from posenc.explorer.notebook import Explorer, show

__all__ = ["Explorer", "page", "show"]
