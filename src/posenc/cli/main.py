"""The command ``posenc``: it finds the command that is asked for, runs it, and says what failed.

Only the chosen command is filled in, and torch is imported only inside its ``run``, so that help
and mistakes answer at once.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from posenc.cli.commands import COMMANDS, command_named, summary
from posenc.cli.errors import Terminated, UserError, one_line
from posenc.cli.parsing import close, parsed

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
        posenc 0.3.0.dev0
        0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        with _signals():
            status = _run(words)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Terminated as end:
        return end.status
    except BrokenPipeError:
        _leave_stdout()
        return 128 + signal.SIGPIPE
    except EXPECTED as error:
        _complain(one_line(error))
        for line in getattr(error, "listing", "").splitlines():
            _complain(line.rstrip(), "")
        if isinstance(error, OSError):
            _leave_stdout()
        return 2
    return status


EXPECTED = (
    UserError,
    ValueError,
    TypeError,
    OSError,
    MemoryError,
    RuntimeError,
    IndexError,
    OverflowError,
)
"""What a request may end in; anything else is a fault of the program and shows where it is."""


def _leave_stdout() -> None:
    """Nothing more goes there: whoever read it has left, or its disk is full.

    Python flushes at exit what it still holds, and would complain a second time.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        listing = "\n".join(f"  {name:<9} {summary(name)}" for name in COMMANDS)
        sys.stdout.write(HELP.format(commands=listing))
        return 0
    name, rest = words[0], words[1:]
    if name == "--version":
        if rest:
            raise UserError(f"--version stands alone; leave {' '.join(rest)} out")
        from importlib import metadata  # a third of the time that help takes

        sys.stdout.write(f"posenc {metadata.version('posenc')}\n")
        return 0
    if name not in COMMANDS:
        what = "option" if name.startswith("-") else "command"
        known = ("--help", "--version") if what == "option" else COMMANDS
        listed = ", ".join(known)
        raise UserError(
            f"{name!r} is no {what}{close(name, known) or f'; expected one of {listed}'}"
        )
    command = parsed(command_named(name), name, rest)
    if getattr(command, "format", "text") != "text":
        _on_unknown_letters("strict")  # data are as they are, or not at all
    return 0 if command is None else command.run() or 0


def _open_streams() -> None:
    """What is printed goes nowhere where a stream is closed, and anywhere else in some letters."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    _on_unknown_letters("backslashreplace")


def _on_unknown_letters(way: str) -> None:
    """What becomes of letters that the encoding of standard output lacks, as − in ASCII."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=way)


def _complain(message: str, by: str = "posenc: ") -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(f"{by}{message}\n")


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
