"""The command ``posenc``: it finds the command that is asked for, runs it, and says what failed.

Every command is one file: a frozen dataclass whose fields are the arguments, and ``run``. Only the
chosen file is imported, and torch only inside ``run``, so that help and mistakes answer at once.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata

from posenc.cli.errors import Terminated, UserError, one_line

COMMANDS = {
    "encode": ("Encode", "Encode text: tokens, ids, embeddings, and their positions added."),
    "table": ("Table", "Print what positions alone say."),
    "explain": ("Explain", "Explain one number of the table, step by step."),
    "walk": ("Walk", "Walk a sentence through a transformer encoder, every number shown."),
    "heatmap": ("Heatmap", "Draw the table as a heatmap, in a file or in the terminal."),
    "curves": ("Curves", "Draw dimensions as curves over the position."),
    "binary": ("Binary", "Print binary numbers beside waves: both count."),
    "shift": ("Shift", "Print the map that moves an encoding by an offset."),
    "distance": ("Distance", "Print how alike positions are, over their offset."),
    "compare": ("Compare", "Compare the sinusoidal conventions by their properties."),
    "inspect": ("Inspect", "Say what a model's config.json does with positions, or compare two."),
    "check": ("Check", "Find the known faults of somebody's own implementation."),
    "explore": ("Explore", "Open the explorer: every figure, to be touched, in a browser."),
    "info": ("Info", "Say which versions and optional parts are here."),
}

HELP = """usage: posenc [--help] [--version] COMMAND ...

Positional encodings for transformers, seen and used.

commands:
{commands}

try:
  posenc encode "your cat is a lovely cat" --dim 8
  posenc table --length 4 --dim 4 --base 100
  posenc walk "your cat is a lovely cat" --dim 16 --heads 2
  posenc inspect config.json

posenc COMMAND --help shows the options of a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit status.

    Args:
        argv: The words after ``posenc``; those of the process by default.

    Returns:
        0 (or what the command says: ``check`` gives 1 for faults), 2 after a message on standard
        error, 130 after an interrupt, 128 + n after signal n.

    Example:
        >>> main(["--version"])
        posenc 0.1.0
        0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with _signals():
            status = _run(words)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Terminated as end:
        return end.status
    except BrokenPipeError:
        # Whoever read has left; a second complaint at exit would come from flushing stdout.
        with contextlib.suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (UserError, ValueError, TypeError, OSError, MemoryError, RuntimeError) as error:
        _complain(one_line(error))
        return 2
    return status


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        listing = "\n".join(f"  {name:<9}{about}" for name, (_, about) in COMMANDS.items())
        sys.stdout.write(HELP.format(commands=listing))
    elif words[0] == "--version":
        sys.stdout.write(f"posenc {metadata.version('posenc')}\n")
    elif words[0] not in COMMANDS:
        raise UserError(f"{words[0]!r} is no command; expected one of {', '.join(COMMANDS)}")
    elif (arguments := _parse(words[0], words[1:])) is not None:
        return arguments.run() or 0
    return 0


def _parse(command: str, words: list[str]):
    """The filled-in arguments of a command; None once its help has been printed."""
    import tyro

    arguments = getattr(import_module(module_of(command)), COMMANDS[command][0])
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(arguments, prog=f"posenc {command}", args=words)
    except SystemExit as end:
        if not end.code:
            return None
        raise UserError(f"{_unboxed(complaint.getvalue())} (see posenc {command} --help)") from None


def module_of(command: str) -> str:
    """The module of a command. One named inspect could hide that of the standard library."""
    return f"posenc.cli.{'inspect_config' if command == 'inspect' else command}"


def _unboxed(message: str) -> str:
    """The first paragraph of a framed message, as one line."""
    said: list[str] = []
    for line in message.splitlines():
        inside = line.strip("│╭╮╰╯─ ")
        if line.startswith("│") and not inside:
            break
        if line.startswith("│"):
            said.append(inside)
    return " ".join(said) or " ".join(message.split())


def _complain(message: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(f"posenc: {message}\n")


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that temporary files go away."""

    def stop(number: int, _frame: object) -> None:
        raise Terminated(number)

    before = {}
    try:
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            # Signals belong to the main thread, and nohup has asked that SIGHUP be ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):
                    before[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
