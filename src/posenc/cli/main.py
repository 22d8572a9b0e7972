"""The command ``posenc``: it finds the command that is asked for, runs it, and says what failed.

Only the chosen command is filled in, and torch is imported only inside its ``run``, so that help
and mistakes answer at once.
"""

import contextlib
import inspect
import io
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from posenc.cli.errors import UserError, close, one_line

COMMANDS = {
    "encode": "Encode text: tokens, ids, embeddings, with positions added.",
    "table": "Print the table of an encoding, one row a position.",
    "explain": "Explain one number of the table, step by step.",
    "walk": "Walk a sentence through a transformer encoder, every number shown.",
    "heatmap": "Draw the table as a heatmap, in a file or in the terminal.",
    "curves": "Draw columns of the table as curves over the position.",
    "binary": "Print binary numbers beside sines: both count fast and slow.",
    "shift": "Print the map that moves an encoding by an offset, and its error.",
    "distance": "Print how an encoding scores each distance, query - key.",
    "compare": "Compare the sinusoidal conventions by their properties.",
    "inspect": "Describe the positions in a config.json, or compare two files.",
    "convert": "Convert a checkpoint to the other pairing of rotated channels.",
    "export": "Export the positions in a config.json to another program.",
    "check": "Identify an implementation, and find its known faults.",
    "parity": "Compare two rotary implementations bit by bit.",
    "lab": "Compare encodings by training small models.",
    "explore": "Open the explorer in a browser, or write it as one file.",
    "info": "Print versions, compiled kernels and optional parts.",
}
"""In the order of the help, which says these words of each; its docstring says what follows."""

MODELS = ("inspect", "convert", "export", "check", "parity", "lab")
"""Whose options stand in ``commands.models``; others' in a file of their name, or ``showing``."""

HELP = """usage: posenc [--help] [--version] COMMAND ...

Positional encodings for transformers, seen and used.

{commands}

Try: posenc encode "your cat is a lovely cat" --dim 8
posenc COMMAND --help shows the options of a command.
"""

EXPECTED = (
    UserError, ImportError, ValueError, TypeError, OSError, MemoryError, RuntimeError, IndexError,
    OverflowError,
)  # fmt: skip
"""What a request may end in; anything else is a fault of the program and shows where it is."""

MOST = {
    **dict.fromkeys(("length", "workers", "max_length", "vocabulary_size", "batch_size"), 1 << 62),
    **dict.fromkeys(("dim", "heads", "inner"), 1 << 20),
    "longest": 1 << 24,
    "depth": 1000,
}
"""Options that are at least 1, and the largest that make sense: larger ones fill the memory."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command, of these words or those of the process, and gives its exit status.

    That is 0 (or what the command says: ``check`` gives 1 for faults), 2 after a message on
    standard error, 130 after an interrupt, 128 + n after signal n.

    Example:
        >>> main(["--version"])
        posenc 0.3.0
        0
    """
    if argv is None:  # SIGTERM unwinds the stack as Ctrl-C does, so that temporary files go away
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if isinstance(sys.stdout, io.TextIOWrapper):  # for letters that it lacks, as − in ASCII
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _leave_stdout()
        return 128 + signal.SIGPIPE
    except EXPECTED as error:
        with contextlib.suppress(BrokenPipeError):
            notes = getattr(error, "__notes__", [])
            print(f"posenc: {one_line(error)}", *notes, sep="\n", file=sys.stderr)
        if isinstance(error, OSError):
            _leave_stdout()
        return 2


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    name, *rest = words or ["--help"]
    if name in ("--help", "-h"):
        listed = (f"  {command:<9} {about}" for command, about in COMMANDS.items())
        sys.stdout.write(HELP.format(commands="\n".join(listed)))
        return 0
    if words == ["--version"]:
        from importlib import metadata  # a third of the time that help takes

        print(f"posenc {metadata.version('posenc')}")
        return 0
    if name not in COMMANDS:
        raise UserError(f"{name!r} is no command{close(name, COMMANDS)}")
    command = _parsed(name, rest)
    for option, most in MOST.items():
        number = getattr(command, option, None)
        if number is not None and not 1 <= number <= most:
            name = f"--{option.replace('_', '-')}"
            raise UserError(f"{name} is {number}; it must be one of 1 … {most}")
    return command.run() or 0


def _parsed(name: str, words: list[str]) -> Any:
    """The filled-in command; of help and mistakes, which it prints, tyro makes SystemExit."""
    import tyro

    own = find_spec(f"posenc.cli.commands.{name}")
    file = "models" if name in MODELS else name if own else "showing"
    kind = getattr(import_module(f"posenc.cli.commands.{file}"), name.capitalize())
    room = min(100, shutil.get_terminal_size().columns)
    told = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    # tyro joins lines, but for those that begin with a blank.
    about = [textwrap.fill(x, room, initial_indent="  ", subsequent_indent="  ") for x in told]
    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.HelptextFromCommentsOff)
    description = "\n".join([COMMANDS[name], *about])
    return tyro.cli(kind, prog=f"posenc {name}", args=words, description=description, config=config)


def _leave_stdout() -> None:
    """Whoever read it has left, or its disk is full: Python would complain again when it exits."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
