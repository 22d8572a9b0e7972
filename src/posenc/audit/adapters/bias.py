"""How something is called that gives a bias for scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.calls import (
    as_tensor,
    assignments,
    bound,
    callables_of,
    has_zeros,
    text_of,
)
from posenc.audit.report import (
    AddsNothingError,
    CallFailedError,
    CannotCheckError,
    NotAskedError,
)
from posenc.audit.signatures import Parameter, role_of
from posenc.audit.subjects import GUESSES, Subject

SEQ = 12

Run = Callable[..., Tensor]


@dataclass
class BiasView:
    """Something that gives a bias ``[heads, q_len, k_len]``.

    Attributes:
        subject: The source of copies.
        run: From a copy, q_len, k_len and the dtype of scores to the bias; with ``scores``
            ``[1, heads, q_len, k_len]``, where it takes some, to what it makes of them, and of
            more rows to that as it comes.
        text: How it is called, as Python.
        heads: Number of heads.
        rows: Whether fewer queries than keys can be asked for.
        key_only: Whether all queries share one row, as slope × key position.
        fixed: The only length that it takes, if it is but one.
        slopes_only: Whether it gives slopes, and no bias.
        takes_scores: Whether it takes scores, to which it may add.
        takes_positions: Whether it takes positions of queries and of keys, which ``run`` has as
            ``at``; they run on by one where it has none.
        takes_mask: Whether it takes a mask of padding, which ``run`` has as ``mask``; to it the
            bias of all rows comes as it is.
        says_no_size: Whether a call tells it nothing of queries and keys.
    """

    subject: Subject
    run: Run
    text: str
    heads: int = 0
    rows: bool = False
    key_only: bool = False
    fixed: int | None = None
    slopes_only: bool = False
    takes_scores: bool = False
    takes_positions: bool = False
    takes_mask: bool = False
    says_no_size: bool = False

    kind = "bias"

    def bias(
        self, q_len: int, k_len: int, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """The bias ``[heads, q_len, k_len]``, in its own dtype."""
        made = self.run(self.subject.fresh() if by is None else by, q_len, k_len, dtype)
        if made.shape[-2] not in (1, q_len) or made.shape[-1] != k_len:
            raise CallFailedError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}")
        return made.expand(-1, q_len, -1)

    def square(self, seq: int | None = None) -> Tensor:
        """The bias of as many queries as keys, float64; masked entries −∞."""
        seq = self.fixed or seq or SEQ
        made = self.bias(seq, seq).double()
        return made.masked_fill(made < -1e8, -torch.inf)

    def seen(self, q_len: int, k_len: int, by: Any = None) -> Tensor:
        """The bias less that of each query's own key: what a softmax can see of it.

        Where that is hidden, less what own keys receive elsewhere; if that is not one number, less
        that of the nearest key before it that is seen, or after it.
        """
        made = self.bias(q_len, k_len, by=by).double()
        made = made.masked_fill(made < -1e8, -torch.inf)
        index = torch.arange(k_len - q_len, k_len)[:, None].expand(len(made), -1, -1)
        own = made.gather(2, index)
        away = own.isneginf()
        if not bool(away.any()):
            return made - own
        most, least = own.amax(1, keepdim=True), own.masked_fill(away, torch.inf).amin(1, True)
        one = most - least <= 1e-5 * most.abs()
        near = made.gather(2, _nearest(made.isneginf(), index))
        other = torch.where(one | ~most.isfinite(), most, near)
        other = other.masked_fill(other.isneginf(), 0.0)
        return made - torch.where(away.any(1, keepdim=True), other.where(one | away, own), own)

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


class OtherShapeError(CallFailedError):
    """The thing answered in a shape that is no bias of so many queries and keys.

    Attributes:
        made: What it answered.
    """

    def __init__(self, said: str, made: Tensor) -> None:
        super().__init__(said)
        self.made = made


FORMS = (
    {"q_len", "k_len"}, {"length"}, {"scores"}, {"mask"}, {"q_positions", "k_positions"},
    {"length", "heads"}, {"q_len", "k_len", "heads"}, {"mask", "heads"}, {"heads"},
)  # fmt: skip
LOOSE_FORMS = ({"q", "k"}, {"x"}, {"positions"}, set())
"""What other things are called with too, so that these are tried last."""


def bias_of(
    subject: Subject, _layout: str | None, _width: int | None, *, loosely: bool = False
) -> BiasView:
    """Find out how something gives its bias.

    Raises:
        CannotCheckError: It does not, in any form known here.
    """
    for view in _views(subject, LOOSE_FORMS if loosely else FORMS):
        if not _measured(view) or (loosely and _takes_ids(view)):
            continue
        if view.says_no_size and not 1 < view.heads == heads_of(subject.fresh()):
            continue  # it may be a table, or a map of as many channels
        return view
    raise CannotCheckError("nothing that gives a bias for scores")


def _views(subject: Subject, forms: Sequence[set[str]]) -> Iterator[BiasView]:
    thing = subject.fresh()
    for text, find in sorted(callables_of(thing), key=lambda each: each[0] != "subject"):
        for parameters in assignments(find(thing)):
            required = {p.role for p in parameters if p.required} - {"dtype"}
            roles = {p.role for p in parameters}
            if not required and {"length"} & roles:
                required = {"length"}
            if required not in forms:
                continue
            uses = frozenset(role for role in required if role is not None)
            yield BiasView(
                subject, _runner(subject, find, parameters, uses), text_of(text, parameters, uses),
                takes_scores="scores" in uses, takes_positions="q_positions" in uses,
                takes_mask="mask" in uses, says_no_size=not uses,
            )  # fmt: skip


def _runner(
    subject: Subject,
    find: Callable[[Any], Any],
    parameters: list[Parameter],
    uses: frozenset[str],
) -> Run:
    def given(
        thing: Any,
        q_len: int,
        k_len: int,
        dtype: torch.dtype,
        scores: Tensor | None = None,
        at: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        heads = heads_of(thing) or GUESSES["heads"]
        if uses <= {"length", "heads"} and q_len != k_len and uses & {"length"}:
            raise CallFailedError("it takes one length, for queries and keys")
        before = k_len - q_len
        blank = torch.zeros(1, heads, q_len, k_len, dtype=dtype)
        queries, keys = at or (torch.arange(before, k_len), torch.arange(k_len))
        values = {
            "q_len": q_len, "k_len": k_len, "length": k_len, "heads": heads, "dtype": dtype,
            "scores": blank if scores is None else scores, "x": blank.clone(),
            "mask": torch.ones(1, k_len, dtype=torch.long) if mask is None else mask.clone(),
            "offset": before,
            "q_positions": queries, "k_positions": keys,
            "positions": keys,
            "q": torch.zeros(1, heads, q_len, 16, dtype=dtype),
            "k": torch.zeros(1, heads, k_len, 16, dtype=dtype),
        }  # fmt: skip
        if uses == {"mask"} and q_len != k_len:
            raise CallFailedError("it takes a mask of the keys, no number of queries")
        made = as_tensor(bound(find(thing), parameters, values, uses | {"dtype", "offset"}))
        if not isinstance(made, Tensor) or not made.is_floating_point():
            raise CallFailedError(f"it gives {type(made).__name__}, no bias")
        if uses == {"heads"} and made.numel() != heads:
            raise CallFailedError(f"it gives the shape {tuple(made.shape)}, no slopes")
        return made

    def run(
        thing: Any,
        q_len: int,
        k_len: int,
        dtype: torch.dtype,
        scores: Tensor | None = None,
        at: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        made = given(thing, q_len, k_len, dtype, scores, at, mask)
        if mask is not None:
            return made
        if uses == {"heads"}:
            return _from_slopes(made.flatten(), q_len, k_len)
        if scores is not None and len(scores) > 1:
            return made
        if made.shape == (q_len, q_len, q_len) and q_len == k_len and heads_last(q_len):
            return made.permute(2, 0, 1)
        return _shaped(made, q_len, k_len)

    def heads_last(heads: int) -> bool:
        """Where heads are as many as tokens, a row of one token more tells which axis is theirs."""
        seq = heads + 1
        try:
            made = given(subject.fresh(), seq, seq, torch.float32)
        except CallFailedError:
            return False
        return made.shape == (seq, seq, heads)

    return run


def heads_of(thing: Any) -> int | None:
    """The number of heads that a thing says."""
    for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
        if role_of(name) == "heads" and isinstance(value, int):
            return value
    return None


def _from_slopes(slopes: Tensor, q_len: int, k_len: int) -> Tensor:
    distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
    return -slopes.double()[:, None, None] * distance.abs()


def _shaped(made: Tensor, q_len: int, k_len: int) -> Tensor:
    """``[heads, q_len or 1, k_len]`` from the shapes in which biases come."""
    if made.ndim < 2 or made.shape[-1] != k_len or made.shape[-2] not in (1, q_len):
        if made.ndim == 3 and made.shape[:2] == (q_len, k_len):
            return made.permute(2, 0, 1)
        raise OtherShapeError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}", made)
    if made.ndim == 2:
        return made[None]
    if made.ndim > 4 or (made.ndim == 4 and made.shape[0] != 1):
        raise CallFailedError(f"it gives the shape {tuple(made.shape)}")
    return made.reshape(-1, *made.shape[-2:])


def _measured(view: BiasView) -> bool:
    """Whether it is a bias: numbers for each query and key, whatever the content."""
    for seq, alone in ((SEQ, False), *((size, True) for size in _sizes(view))):
        try:
            made = view.bias(seq, seq)
            if not alone:
                view.bias(SEQ + 1, SEQ + 1)
        except NotAskedError:
            continue
        if alone and _is_a_table(view, made):
            continue
        if not made.any() and has_zeros(view.subject.fresh()):
            raise AddsNothingError(
                "its bias is 0 everywhere, as where a table is still of zeros. Give it numbers "
                "first, as torch.nn.init.normal_ of the table does"
            )
        view.heads = len(made)
        view.slopes_only = "heads" in view.text and made.dtype == torch.float64
        view.fixed = seq if alone else None
        view.key_only = bool((made == made[:, :1]).all())
        try:
            view.bias(1, SEQ + 3)
            view.rows = not view.fixed
        except NotAskedError:
            view.rows = False
        return True
    return False


def _is_a_table(view: BiasView, made: Tensor) -> bool:
    """Whether what has the shape of a bias is a table of rows as wide as they are many.

    Of fewer rows it gives fewer, as wide as before; or the number of rows is added to all of it.
    """
    seq = made.shape[-1]
    try:
        view.bias(seq - 1, seq - 1)
    except OtherShapeError as other:
        if other.made.numel() == made.numel():
            return not torch.equal(other.made.reshape(made.shape), made)
        return other.made.shape[-2:] == (seq - 1, seq)
    except NotAskedError:
        pass
    return False


def _takes_ids(view: BiasView) -> bool:
    """Whether equal positions receive unlike numbers, and others than those of a row: as ids do."""
    seq = view.fixed or SEQ
    alike = torch.zeros(seq, dtype=torch.long)
    try:
        made = view.run(view.subject.fresh(), seq, seq, torch.float32, at=(alike, alike))
    except NotAskedError:
        return False
    seen = made.isfinite()
    most, least = made.masked_fill(~seen, -torch.inf), made.masked_fill(~seen, torch.inf)
    return bool((most.amax((1, 2)) > least.amin((1, 2))).any()) and not torch.equal(
        made.nan_to_num(), view.bias(seq, seq).nan_to_num()
    )


def _sizes(view: BiasView) -> Iterator[int]:
    """Numbers of tokens for which a module with windows or a fixed length is built."""
    if view.says_no_size:
        try:
            yield view.bias(SEQ, SEQ).shape[-1]
        except OtherShapeError as other:
            if other.made.ndim > 1:
                yield other.made.shape[-1]
        except NotAskedError:
            pass
        return
    thing = view.subject.fresh()
    for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
        if "window" in name or role_of(name) == "length":
            sides = value if isinstance(value, tuple | list) else (value,)
            if all(isinstance(side, int) for side in sides):
                yield sides[0] * sides[-1] if "window" in name else sides[0]
