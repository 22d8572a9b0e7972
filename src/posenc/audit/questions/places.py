"""Positions as they are said: several at once, far along, in any order."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from posenc.audit.questions.asking import fault
from posenc.audit.report import Fault, FewerRowsError, NotAskedError

NEAR = 20
"""Below it, what one token receives alone and among others is held to rounding."""

ANYHOW = [7, 3, 19, 3, 0]
"""Positions in no order, one of them twice."""

STARTS = torch.tensor([0, 5, 1, 3, 2])
"""Where rows of a batch begin, whose padding is on the left."""


def lines(length: int, *, in_any_order: bool) -> Iterator[Tensor]:
    """Positions of some tokens, below a length.

    Example:
        >>> [line.tolist() for line in lines(64, in_any_order=False)]
        [[5, 6, 7], [50, 51, 52], [61, 62, 63]]
    """
    for first in (5, 50, 130, 1000, length - 3):
        if first + 3 <= length:
            yield torch.arange(first, first + 3)
    if in_any_order:
        yield torch.tensor(ANYHOW)
        if length > 50:
            yield torch.tensor([length - 1, 2, length // 2])


def allowed(line: Tensor, rounding: float) -> float:
    """How far two ways to say positions may be apart; far along, angles are sums of float32."""
    return rounding if int(line.max()) < NEAR else 1e-3


def said(line: Tensor) -> str:
    """Positions in words.

    Example:
        >>> said(torch.tensor([7, 3, 19]))
        '7, 3, 19'
    """
    return ", ".join(f"{p:,}" for p in line.tolist())


def told(asked: list[Tensor]) -> str:
    """Which of ``lines`` were answered.

    Raises:
        NotAskedError: None was.

    Example:
        >>> told(list(lines(64, in_any_order=True)))
        'three at once up to position 63; in any order'
    """
    if not asked:
        raise NotAskedError("it refuses several positions at once")
    most = max(int(line.max()) for line in asked)
    rises = all(bool((line.diff() == 1).all()) for line in asked)
    return f"three at once up to position {most:,}" + ("" if rises else "; in any order")


def over_the_edge(call: Callable[[Tensor], Tensor], edge: int, reproduction: str) -> Fault | None:
    """A fault where one token at the position ``edge``, or two across it, are answered wrongly.

    A slice of a table that ends there is shorter than the tokens, and joins them all the same
    where it has one row, or where there is one token.

    Args:
        call: From positions to a row for each.
        edge: How many positions there are, as far as is known.
        reproduction: Lines with ``{count}`` tokens and the ``{first}`` position.
    """
    for first, count in ((edge, 1), (edge - 1, 2), (edge, 2)):
        try:
            made = call(torch.arange(first, first + count))
        except FewerRowsError as reason:
            words = f"no row for each comes back, without a word ({reason})"
        except NotAskedError:
            continue
        else:
            if count == 1 or not torch.equal(made[0], made[1]):
                continue
            words = "both receive one and the same, without a word"
        tokens = f"a token at {first:,}" if count == 1 else f"{count} tokens from {first:,} on"
        return fault(
            "truncated-silently",
            "wrong",
            f"the table ends before position {edge:,}; of {tokens}, {words}",
            edge,
            reproduction.format(count=count, first=first),
        )
    return None
