"""Which encoding a command is about, and what is said of it."""

import copy
import inspect
from typing import Any

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.errors import UserError, check_seed
from posenc.cli.sinusoid import Sinusoid
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.expression import Encoding, encoding_from


def chosen(asked: Any, *, dim: int, seed: int = 0) -> Encoding:
    """The encoding of ``--encoding``, or the sinusoidal one of ``--dim``, ``--base`` and so on.

    What an encoding has learned is drawn from ``seed``.
    """
    if asked.encoding is None:
        width, base = (dim if asked.dim is None else asked.dim), asked.base
        encoding = Sinusoidal(
            width, 10_000.0 if base is None else base, asked.convention or "paper"
        )
    else:
        for name in ("dim", "base", "convention"):
            if getattr(asked, name) is not None:
                raise UserError(f"got --encoding and --{name}; leave --{name} out")
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            encoding = encoding_from(asked.encoding)
    if not is_drawn(encoding):
        check_seed(getattr(asked, "seed", 0), type(encoding).__name__)
    return encoding


def name_of(encoding: Encoding) -> str:
    """The encoding in one line, as it would be written: itself, and what it wraps.

    Example:
        >>> name_of(encoding_from("XPos(Rotary(8))"))
        'XPos(Rotary(Geometric(dim=8, base=10000.0)))'
        >>> name_of(encoding_from("DAPE(2, FIRE(2, c=0.5))"))
        'DAPE(heads=2, bias=FIRE(heads=2, c=0.5))'
    """
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
    note = note_of(encoding)
    return {"encoding": name_of(encoding), **({"note": note} if note else {})}


def is_plain(encoding: Sinusoidal) -> bool:
    """Whether its width, base and convention are all that it was given."""
    plain = Sinusoidal(encoding.dim, encoding.base, encoding.convention)
    return plain.extra_repr() == encoding.extra_repr()


def note_of(encoding: Encoding) -> str:
    """What is to be said of its learned numbers; empty where it learns none."""
    if not learns(encoding):
        return ""
    if is_drawn(encoding):
        return "What this encoding learns is seeded random here: mechanism only."
    return "What this encoding learns is not trained here, and begins with these numbers."


def drawn_as(encoding: Encoding) -> str:
    """What a picture says of learned numbers behind a name; empty where there are none."""
    if not learns(encoding):
        return ""
    return f" ({'seeded random' if is_drawn(encoding) else 'as it begins'}, not learned)"


def learns(encoding: Encoding) -> bool:
    """Whether some of its numbers are learned."""
    return isinstance(encoding, torch.nn.Module) and any(True for _ in encoding.parameters())


def is_drawn(encoding: Encoding) -> bool:
    """Whether some of what it learns is random: another seed would give other numbers.

    Example:
        >>> is_drawn(encoding_from("T5Bias(2)")), is_drawn(encoding_from("T5Bias(2, std=0.0)"))
        (True, False)
    """
    if not learns(encoding):
        return False
    pairs = zip(_drawn_anew(encoding, 0), _drawn_anew(encoding, 1), strict=True)
    return any(not torch.equal(one, other) for one, other in pairs)


def _drawn_anew(encoding: Any, seed: int) -> list[Tensor]:
    """The parameters of a copy, drawn from ``seed``."""
    made = copy.deepcopy(encoding)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        # Parts first, since what holds them may begin them with other numbers than they do.
        for part in reversed(list(made.modules())):
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
    return list(made.parameters())


def key_heads(encoding: QueryKeyEncoding) -> int:
    """How many key heads an encoding was built for; 1 where all are treated alike."""
    return getattr(encoding, "heads", 1)
