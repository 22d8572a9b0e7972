"""``posenc explore``: the page on which encodings can be touched."""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

from posenc.cli.errors import UserError, check_heeded, check_one_of
from posenc.cli.files import check, placed
from posenc.cli.options import option


@dataclass(frozen=True)
class Explore:
    """The page needs no network and sends nothing anywhere: it is served to this machine alone, and
    the file opens from a disk, a stick or an attachment.
    """

    output: Annotated[
        Optional[Path],
        option(
            "Where to write the page: a name ending in .html. Without it the page is served.",
            "FILE",
            short="-o",
        ),
    ] = None
    port: Annotated[int, option("Port of 127.0.0.1 to serve at; 0 takes a free one.", "N")] = 0
    no_browser: Annotated[bool, option("Do not open a browser.")] = False

    def run(self) -> None:
        """Writes or serves."""
        if self.output is not None:
            from posenc.explorer import page

            check_heeded(self, port="beside --output", no_browser="beside --output")
            check(self.output, ".html", ".htm")
            content = page().encode()
            with placed(self.output) as file:
                file.write(content)
            print(f"wrote {self.output} ({len(content) / 1000:.0f} kB); open it in a browser")
            return
        from posenc.explorer.serving import serve

        check_one_of("--port", self.port, 1 << 16)
        try:
            serve(self.port, browser=not self.no_browser)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise UserError(f"port {self.port} is taken; choose another, or leave it out") from None
