"""Something that gives a bias for scores, and how it is called."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import Call, View, answers, best, calls_of
from posenc.audit.report import CallFailedError
from posenc.audit.signatures import role_of
from posenc.audit.subjects import GUESSES, Subject

SEQ = 12

# What a call is told, of one length for queries and keys, and of any.
ONE_LENGTH: tuple[set[str | None], ...] = ({"length"}, {"length", "heads"}, {"mask"})
FORMS: tuple[set[str | None], ...] = (
    *ONE_LENGTH, {"q_len", "k_len"}, {"scores"}, {"q_positions", "k_positions"},
    {"q_len", "k_len", "heads"}, {"mask", "heads"}, {"heads"},
)  # fmt: skip


def _other_shape(made: Tensor, q_len: int, k_len: int) -> CallFailedError:
    return CallFailedError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}")


@dataclass(kw_only=True)
class BiasView(View):
    """Something that gives a bias ``[heads, q_len, k_len]``.

    ``run`` takes a copy, q_len, k_len and the dtype of scores. With ``scores``
    ``[1, heads, q_len, k_len]`` it gives what becomes of them; of more rows, as it comes.
    """

    takes: frozenset[str | None]  # the roles that it is told
    fixed: int | None = None  # the only length that it takes, if it is but one
    heads: int = 0
    rows: bool = False  # whether fewer queries than keys can be asked for
    key_only: bool = False  # whether all queries share one row, as slope × key position
    slopes_only: bool = False  # whether it gives slopes, and no bias

    kind = "bias"

    def bias(
        self, q_len: int, k_len: int, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """The bias ``[heads, q_len, k_len]``, in its own dtype."""
        made = self.run(self.subject.fresh() if by is None else by, q_len, k_len, dtype)
        return made.expand(-1, q_len, -1)

    def seen(self, q_len: int, k_len: int) -> Tensor:
        """The bias less that of each query's own key: what a softmax can see of it.

        Where that is hidden, less that of the nearest key before it that is seen, or after it.
        """
        made = self.bias(q_len, k_len).double()
        made = made.masked_fill(made < -1e8, -torch.inf)
        own = torch.arange(k_len - q_len, k_len)[:, None].expand(len(made), -1, -1)
        base = made.gather(2, _nearest(made.isneginf(), own))
        return made - base.masked_fill(base.isneginf(), 0.0)

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        what = "gives slopes" if self.slopes_only else "gives a bias"
        return f"{what} for {self.heads} heads; called as {self.text}"


def _nearest(away: Tensor, own: Tensor) -> Tensor:
    """The last key up to each query's own that is not away, or the first after it."""
    keys = torch.arange(away.shape[-1])
    before = torch.where(away | (keys > own), -1, keys).amax(-1, keepdim=True)
    after = torch.where(away | (keys < own), len(keys) - 1, keys).amin(-1, keepdim=True)
    return torch.where(before < 0, after, before)


def bias_of(
    subject: Subject, _layout: str | None, _width: int | None, call: Call | None = None
) -> BiasView:
    """How something gives its bias."""
    calls = _calls(subject.fresh()) if call is None else (call,)
    return best((view for each in calls for view in _views(subject, each)), measured)


def _calls(thing: Any) -> Iterator[Call]:
    for call in sorted(calls_of(thing), key=lambda each: each.name != "subject"):
        required = call.required - {"dtype"}
        if not required and "length" in call.roles:
            required = frozenset({"length"})
        if set(required) in FORMS:
            yield call.using(*required)


def _views(subject: Subject, call: Call) -> Iterator[BiasView]:
    """A call with any number of tokens, and with those that it may be built for alone."""
    run, takes = _runner(subject, call), call.said - {"dtype"}
    for size in (None, *_sizes(call, subject.fresh())):
        yield BiasView(subject=subject, run=run, text=call.text, takes=takes, fixed=size)


def _sizes(call: Call, thing: Any) -> Iterator[int]:
    """Numbers of tokens for which a module with windows or a fixed length is built."""
    if not call.parameters:
        with suppress(CallFailedError):
            made = call(thing, {})
            if isinstance(made, Tensor) and made.ndim:
                yield made.shape[-1]
    for name, value in vars(thing).items() if isinstance(thing, nn.Module) else ():
        sides = value if isinstance(value, tuple | list) else (value,)
        if all(isinstance(side, int) for side in sides):
            if "window" in name:
                yield sides[0] * sides[-1]
            elif role_of(name) == "length":
                yield sides[0]


def _heads(thing: Any) -> int:
    """The number of heads that a thing says, or a usual one."""
    said = getattr(thing, "__dict__", {}).items()
    numbers = (n for name, n in said if isinstance(n, int) and role_of(name) == "heads")
    return next(numbers, GUESSES["heads"])


def _runner(subject: Subject, call: Call) -> Callable[..., Tensor]:
    """A call for so many queries and keys."""
    said = call.said - {"dtype"}
    beside = call.using(*call.uses, "dtype", "offset")
    gives_slopes = said == {"heads"} and not call.written
    one_length = said in ONE_LENGTH or (call.written and not said & {"q_len", "scores"})

    def given(thing: Any, q_len: int, k_len: int, dtype: torch.dtype, **told: Any) -> Tensor:
        heads, before = _heads(thing), k_len - q_len
        blank, keys = torch.zeros(1, heads, k_len, 16, dtype=dtype), torch.arange(k_len)
        values = {
            "q_len": q_len, "k_len": k_len, "length": k_len, "heads": heads, "dtype": dtype,
            "scores": torch.zeros(1, heads, q_len, k_len, dtype=dtype), "offset": before,
            "mask": torch.ones(1, k_len, dtype=torch.long),
            "q_positions": keys[before:], "k_positions": keys,
            "q": blank[:, :, before:], "k": blank,
        }  # fmt: skip
        made = beside(thing, values | {role: value.clone() for role, value in told.items()})
        if not isinstance(made, Tensor) or not made.is_floating_point():
            raise CallFailedError(f"it gives {type(made).__name__}, no bias")
        if gives_slopes and made.numel() != heads:
            raise _other_shape(made, q_len, k_len)
        return made

    def run(
        thing: Any, q_len: int, k_len: int, dtype: torch.dtype, scores: Tensor | None = None, **told
    ) -> Tensor:
        if q_len != k_len and one_length:
            raise CallFailedError("it takes one length, for queries and keys")
        told |= {} if scores is None else {"scores": scores}
        made = given(thing, q_len, k_len, dtype, **told)
        if "mask" in told or (scores is not None and len(scores) > 1):
            return made
        if gives_slopes:
            distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
            return -made.flatten().double()[:, None, None] * distance.abs()
        if made.shape == (q_len, q_len, q_len) and q_len == k_len:
            # of one token more, heads are not as many as tokens
            more = given(subject.fresh(), q_len + 1, q_len + 1, torch.float32)
            return made.permute(2, 0, 1) if more.shape[-1] == q_len else made
        return _shaped(made, q_len, k_len)

    return run


def _shaped(made: Tensor, q_len: int, k_len: int) -> Tensor:
    """``[heads, q_len or 1, k_len]`` from the shapes in which biases come."""
    if made.ndim == 3 and made.shape[:2] == (q_len, k_len) and made.shape[2] != k_len:
        return made.permute(2, 0, 1)
    of_rows = made.ndim > 4 or (made.ndim == 4 and made.shape[0] != 1)
    if of_rows or made.ndim < 2 or made.shape[-1] != k_len or made.shape[-2] not in (1, q_len):
        raise _other_shape(made, q_len, k_len)
    return made.reshape(-1, *made.shape[-2:])


def measured(view: BiasView) -> int | None:
    """1 where it is a bias: numbers for each query and key, whatever the content."""
    seq = view.fixed or SEQ
    made = view.bias(seq, seq)
    if not view.fixed:
        view.bias(SEQ + 1, SEQ + 1)
    elif view.takes and len(made) == 1:
        return None  # a table that is as wide as long
    view.refuse_zeros(made)
    view.heads = len(made)
    view.slopes_only = view.takes == {"heads"} and made.dtype == torch.float64
    view.key_only = bool((made == made[:, :1]).all())
    view.rows = not view.fixed and answers(lambda: view.bias(1, SEQ + 3))
    return 1
