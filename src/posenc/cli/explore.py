"""``posenc explore``: the page on which encodings can be touched."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, arg

from posenc.cli.options import Output


@dataclass(frozen=True)
class Explore:
    """Open the explorer in a browser, or write it as one file.

    The page needs no network and sends nothing anywhere: it is served to this machine alone, and
    the file opens from a disk, a stick or an attachment.
    """

    output: Annotated[Output, arg(aliases=["-o"])] = None
    """Where to write the page: a name ending in .html. Without it the page is served."""
    port: Annotated[int, arg(metavar="N")] = 0
    """Port of 127.0.0.1 to serve at; 0 takes a free one."""
    no_browser: FlagCreatePairsOff[bool] = False
    """Do not open a browser."""

    def run(self) -> None:
        """Writes or serves."""
        from posenc.cli.exploring import explore

        explore(self)
