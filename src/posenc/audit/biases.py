"""Questions to something that gives a bias for scores, ``[heads, q_len, k_len]``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import CannotCheckError, Fault, NotApplicableError
from posenc.numerics import slopes

SEQ, FAR = 16, 4_096


@dataclass(frozen=True)
class BiasSubject:
    """A function of two lengths.

    Attributes:
        make: Builds a fresh one.
        call: Gives the bias for q_len and k_len.
        how: How it was called.
    """

    make: Callable[[], Any]
    call: Callable[[Any, int, int], Tensor]
    how: str

    def bias(self, q_len: int, k_len: int, by: Any = None) -> Tensor:
        """The bias ``[heads, q_len, k_len]``, in its own dtype."""
        with torch.no_grad():
            made = self.call(self.make() if by is None else by, q_len, k_len)
        made = made.reshape(-1, *made.shape[-2:])
        return made.expand(-1, q_len, -1)

    def against_self(self, q_len: int, k_len: int) -> Tensor:
        """The bias less that of the last visible key, float64: what a softmax can see of it."""
        made = self.bias(q_len, k_len).double()
        made = made.masked_fill(made < -1e30, -torch.inf)
        index = torch.arange(k_len - q_len, k_len)[:, None].expand(len(made), -1, -1)
        return made - made.gather(2, index)

    @property
    def understood(self) -> str:
        """How it was called."""
        return f"gives a bias for {len(self.bias(SEQ, SEQ))} heads ({self.how})"


def bias_subject(make: Callable[[], Any]) -> BiasSubject:
    """Find out how ``make()`` gives its bias.

    Raises:
        CannotCheckError: It does so in no way known here.
    """
    ways: dict[str, Callable[[Any, int, int], Tensor]] = {
        "(q_len, k_len)": lambda thing, q, k: thing(q, k),
        "(length)": lambda thing, q, k: thing(k),
        ".compute_bias(q_len, k_len)": lambda thing, q, k: thing.compute_bias(q, k),
    }
    said = []
    for how, call in ways.items():
        try:
            with torch.no_grad():
                made = call(make(), SEQ, SEQ)
        except Exception as error:
            said.append(f"{how}: {type(error).__name__}: {error}")
            continue
        if isinstance(made, Tensor) and made.ndim in (3, 4) and made.shape[-1] == SEQ:
            return BiasSubject(make, call, how)
    raise CannotCheckError("; ".join(said[:2]) or "it gives no bias")


def knows_distance_alone(subject: BiasSubject) -> Fault | None:
    """Up to what a softmax cannot see, the bias is the same along each diagonal."""
    seen = subject.against_self(SEQ, SEQ)
    below = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    off = 0.0
    for back in range(1, SEQ):
        along = seen.diagonal(-back, 1, 2)
        off = max(off, (along - along[:, :1]).abs().max().item())
    scale = seen[:, below].abs().max().item() or 1.0
    if off <= 2e-2 * scale:
        return None
    return Fault(
        "depends on absolute positions",
        f"at one distance the bias differs by up to {off:.3g} between queries (its size is up to "
        f"{scale:.3g})",
        off,
    )


def keeps_distances_apart(subject: BiasSubject) -> Fault | None:
    """Four thousand distances keep their own numbers, or the bias says so little by design."""
    length = FAR
    while True:
        try:
            made = subject.bias(1 if _takes_rows(subject) else length, length)[:, -1]
            break
        except Exception as error:
            length //= 2
            if length < SEQ:
                raise NotApplicableError(f"{type(error).__name__}: {error}") from None
    if made.dtype == torch.float32:
        raise NotApplicableError("it gives float32; build it in bfloat16 to ask")
    rules = (slopes.alibi(len(made)), slopes.geometric(len(made)))
    steepest = made[max(range(len(made)), key=lambda h: made[h].double().diff().abs().max())]
    distinct, rule = len(steepest.unique()), rules[0]
    distance = torch.arange(length - 1, -1, -1, dtype=torch.float64)
    best = len((-max(rule) * distance).to(made.dtype).unique())
    near = (-max(rule) * torch.arange(64, dtype=torch.float64)).to(made.dtype).double()
    ours = (steepest.double() - steepest[-1].double()).flip(0)[:64]
    off = (near - ours).abs().max().item()
    if off < 0.05:
        return None
    return Fault(
        "coarse at long lengths",
        f"in {made.dtype} at length {length} the steepest head has {distinct} different values, "
        f"and the nearest 64 keys, which matter most, are off by up to {off:.3g}: slope × absolute "
        f"position rounds where the numbers are largest. Computed from the distance, the error "
        f"near the query is 0 (and there are {best} values)",
        off,
    )


def _takes_rows(subject: BiasSubject) -> bool:
    try:
        return subject.bias(1, SEQ).shape[-2:] == (1, SEQ)
    except Exception:
        return False


def has_known_slopes(subject: BiasSubject) -> Fault | None:
    """A linear bias has the slopes of ALiBi's authors."""
    seen = subject.against_self(SEQ, SEQ)
    fall = seen[:, -1, -2]
    linear = (seen[:, -1, 4] - 11 * fall).abs().max() < 0.02 * fall.abs().max() * 11
    if not linear or fall.abs().max() == 0:
        raise NotApplicableError("it does not fall linearly with distance (no ALiBi)")
    if bool((fall > 0).all()):
        return Fault(
            "wrong sign",
            f"the bias grows with distance: +{fall.max().item():.3g} a token, so far keys win",
            fall.max().item(),
        )
    heads = len(fall)
    wanted = -torch.tensor(slopes.alibi(heads), dtype=torch.float64)
    pure = -torch.tensor(slopes.geometric(heads), dtype=torch.float64)
    off = min((fall / w - 1).abs().max().item() for w in (wanted, pure))
    if off < 2e-2:
        return None
    sorted_off = (fall.sort().values / wanted.sort().values - 1).abs().max().item()
    order = " They are the right ones in another order." if sorted_off < 2e-2 else ""
    return Fault(
        "wrong slopes",
        f"slopes of {heads} heads differ from the authors' by up to {100 * off:.3g} %.{order}",
        off,
    )


def decodes_as_it_prefills(subject: BiasSubject) -> Fault | None:
    """The row of one query is the last row of the square."""
    if not _takes_rows(subject):
        raise NotApplicableError("it gives square matrices only")
    whole, row = subject.against_self(SEQ, SEQ)[:, -1], subject.against_self(1, SEQ)[:, 0]
    off = (whole - row).nan_to_num(0.0).abs().max().item()
    if off < 1e-3:
        return None
    return Fault(
        "decoding differs from prefill",
        f"for one query and {SEQ} keys the bias is up to {off:.3g} away from the last row of the "
        f"square: the query is taken to stand elsewhere",
        off,
    )


QUESTIONS = (
    knows_distance_alone,
    decodes_as_it_prefills,
    has_known_slopes,
    keeps_distances_apart,
)
