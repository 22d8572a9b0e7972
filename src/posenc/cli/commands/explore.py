"""``posenc explore``: the page on which encodings can be touched."""

from dataclasses import dataclass
from typing import Annotated

from typing_extensions import Doc

from posenc.cli.errors import check_one_of
from posenc.cli.files import check, placed
from posenc.cli.options import Flag, Output, Whole


@dataclass(frozen=True)
class Explore:
    """The page needs no network and sends nothing anywhere: it is served to this machine alone, and
    the file opens from a disk, a stick or an attachment. Without --output the page is served.
    """

    output: Annotated[Output, Doc("Where to write the page: a name ending in .html.")] = None
    port: Annotated[Whole, Doc("Port of 127.0.0.1 to serve at; 0 takes a free one.")] = 0
    no_browser: Annotated[Flag, Doc("Do not open a browser.")] = False

    def run(self) -> None:
        """Writes or serves."""
        if self.output is not None:
            from posenc.explorer import page

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
            error.filename = f"port {self.port}"
            raise
