"""Questions to something that changes queries and keys in different ways, as xPos does."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import CannotCheckError, Fault, NotApplicableError

TOGETHER, CACHED = "rotate_queries_and_keys", "rotate_queries_with_cached_keys"


@dataclass(frozen=True)
class PairSubject:
    """Something with one method for queries and keys together, and one for a cache of keys.

    Attributes:
        make: Builds a fresh one.
        width: Width of a head.
    """

    make: Callable[[], Any]
    width: int

    @property
    def understood(self) -> str:
        """How it was called."""
        return (
            f"changes queries and keys [batch, heads, seq, {self.width}] each in its own way "
            f"({TOGETHER})"
        )

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Products of all queries and keys, turned together."""
        with torch.no_grad():
            q, k = getattr(self.make(), TOGETHER)(q, k)
        return q.double() @ k.double().mT

    def decoded(self, q: Tensor, k: Tensor) -> Tensor:
        """Products of the last query with all keys, as behind a cache."""
        with torch.no_grad():
            q, k = getattr(self.make(), CACHED)(q, k)
        return q.double() @ k.double().mT


def pair_subject(make: Callable[[], Any], width: int | None) -> PairSubject:
    """Find out whether ``make()`` has these methods, and for which width.

    Raises:
        CannotCheckError: It has not.
    """
    thing = make()
    if not (hasattr(thing, TOGETHER) and hasattr(thing, CACHED)):
        raise CannotCheckError(f"it has no methods {TOGETHER} and {CACHED}")
    for some in (width,) if width else (64, 32, 128, 16):
        subject = PairSubject(make, some)
        try:
            subject.scores(*torch.randn(2, 1, 1, 5, some))
        except Exception:
            continue
        return subject
    raise CannotCheckError(f"{TOGETHER} takes none of the widths that were tried; give dim")


def is_relative(subject: PairSubject) -> Fault | None:
    """Products depend on the difference of positions alone."""
    q, k = torch.ones(2, 1, 1, 24, subject.width)
    seen = subject.scores(q, k)[0, 0]
    off = max((seen.diagonal(-b) - seen[b, 0]).abs().max().item() for b in range(24))
    if off < 1e-3 * subject.width:
        return None
    return Fault("not relative", f"at one distance products differ by up to {off:.3g}", off)


def decodes_as_it_prefills(subject: PairSubject) -> Fault | None:
    """The row of one query behind a cache is the last row of all."""
    q, k = torch.randn(2, 1, 1, 40, subject.width)
    whole = subject.scores(q, k)[..., -1:, :]
    try:
        row = subject.decoded(q[..., -1:, :], k)
    except Exception as error:
        raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    off = (row - whole).abs().max().item()
    if off < 1e-3:
        return None
    ratio = (row / whole).median().item()
    return Fault(
        "decoding differs from prefill",
        f"scores of the last of 40 queries against a cache are up to {off:.3g} away from those of "
        f"one pass (they are {ratio:.4g} times as large): a model decodes with another encoding "
        f"than it was trained with",
        off,
    )


QUESTIONS = (is_relative, decodes_as_it_prefills)
