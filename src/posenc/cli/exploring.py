"""The work of ``posenc explore``."""

from posenc.cli.atomic import atomic, check
from posenc.cli.errors import UserError
from posenc.cli.explore import Explore


def explore(arguments: Explore) -> None:
    """Runs the command."""
    if not 0 <= arguments.port < 2**16:
        raise UserError(f"--port is {arguments.port}; it must be one of 0 … 65535")
    if arguments.output is None:
        from posenc.explorer.serving import serve

        serve(arguments.port, browser=not arguments.no_browser)
        return
    from posenc.explorer import page

    if arguments.output.suffix not in (".html", ".htm"):
        raise UserError(f"{arguments.output}: the name must end in .html")
    check(arguments.output)
    with atomic(arguments.output) as file:
        file.write(page().encode())
    print(f"wrote {arguments.output} ({len(page().encode()) / 1000:.0f} kB); open it in a browser")
