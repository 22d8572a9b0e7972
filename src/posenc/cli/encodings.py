"""Which encoding a command is about, and what is said of it."""

import inspect
from typing import Any

import torch

from posenc import Sinusoidal
from posenc.cli.errors import check_heeded
from posenc.cli.explanation import Sinusoid
from posenc.encodings.expression import Encoding, encoding_from


def chosen(asked: Any, *, own_width: bool = True) -> Encoding:
    """The encoding of ``--encoding``, drawn from ``--seed``, or the sinusoidal one of ``--dim``."""
    if asked.encoding is None:
        base = 10_000.0 if asked.base is None else asked.base
        return Sinusoidal(asked.dim, base, asked.convention or "paper")
    why = "beside --encoding"
    check_heeded(asked, dim=own_width and why, base=why, convention=why)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(asked.seed)
        return encoding_from(asked.encoding)


def name_of(encoding: Encoding) -> str:
    """The encoding in one line, as it would be written: itself, and what it wraps."""
    if not isinstance(encoding, torch.nn.Module):
        return repr(encoding)
    arguments = inspect.signature(type(encoding)).parameters
    first = next(iter(arguments), "")
    wrapped = {name: name_of(each) for name, each in encoding.named_children()
               if name in arguments and isinstance(each, Encoding)}  # fmt: skip
    lead = wrapped.pop(first, "")
    told = encoding.extra_repr()
    others = [f"{name}={each}" for name, each in wrapped.items() if f"{name}=" not in told]
    parts = ", ".join(filter(None, [lead, told, *others]))
    return f"{type(encoding).__name__}({parts})"


def described(encoding: Encoding) -> dict[str, object]:
    """What JSON says of an encoding."""
    if isinstance(encoding, Sinusoidal):
        given = (encoding.convention, encoding.dim, encoding.base, encoding.offset)
        said = Sinusoid(*given).described()
        return said if is_plain(encoding) else {**said, "encoding": name_of(encoding)}
    said: dict[str, object] = {"encoding": name_of(encoding)}
    return {**said, "note": NOT_TRAINED} if learns(encoding) else said


def is_plain(encoding: Sinusoidal) -> bool:
    """Whether its width, base and convention are all that it was given."""
    plain = Sinusoidal(encoding.dim, encoding.base, encoding.convention)
    return plain.extra_repr() == encoding.extra_repr()


NOT_TRAINED = "What this encoding learns is seeded, and not trained here: mechanism only."


def print_note(encoding: Encoding) -> None:
    """Says below the numbers that those which are learned are none of a trained model."""
    if learns(encoding):
        print(NOT_TRAINED)


def learns(encoding: Encoding) -> bool:
    """Whether some of its numbers are learned."""
    return isinstance(encoding, torch.nn.Module) and any(True for _ in encoding.parameters())
