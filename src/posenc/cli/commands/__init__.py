"""The commands: one a file, each a frozen dataclass of its options with ``run``.

They are named here in the order in which the help lists them. A file imports what is light at its
top and everything else inside ``run``, so that help and mistakes answer without torch, and no two
files need each other.
"""

from importlib import import_module

COMMANDS = (
    "encode",
    "table",
    "explain",
    "walk",
    "heatmap",
    "curves",
    "binary",
    "shift",
    "distance",
    "compare",
    "inspect",
    "convert",
    "export",
    "check",
    "parity",
    "lab",
    "explore",
    "info",
)


def command_named(name: str) -> type:
    """The dataclass of a command.

    Example:
        >>> command_named("table").__name__
        'Table'
    """
    return getattr(import_module(f"posenc.cli.commands.{name}"), name.capitalize())


def summary(name: str) -> str:
    """The first line of what a command says of itself.

    Example:
        >>> summary("info")
        'Say which versions, compiled kernels and optional parts are here.'
    """
    return (command_named(name).__doc__ or "").strip().splitlines()[0]
