"""How something is called that adds to embeddings, or gives the table to add."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import added_layouts, added_refusals
from posenc.audit.adapters.calls import (
    as_tensor,
    assignments,
    bound,
    callables_of,
    has_zeros,
    lengths_of,
    most_taken,
    text_of,
    varies,
    widths_of,
)
from posenc.audit.adapters.layouts import orders
from posenc.audit.report import (
    AddsNothingError,
    CallFailedError,
    CannotCheckError,
    NearlyError,
    NotAskedError,
    OtherResultError,
    UnfitError,
)
from posenc.audit.signatures import Parameter, declared_layout, parameters_of
from posenc.audit.subjects import Subject

BATCH, SEQ = 3, 7

Run = Callable[[Any, Tensor, Tensor | None], Tensor]


@dataclass
class Added:
    """Something that says what to add to ``[batch, seq, dim]``.

    Attributes:
        subject: The source of copies.
        run: From a copy, x ``[batch, seq, dim]`` and positions ``[seq]``, or ``[batch, seq]``, to
            the result, in the same order of axes.
        text: How it is called, as Python.
        dim: Width of the embeddings.
        layout: The order of axes that it takes.
        declared: Whether that order is said by its author or the caller, and not measured.
        moves: Whether positions can be said: ``"positions"``, ``"offset"`` or nothing.
        scale: What embeddings are multiplied with; None where it gives the table only.
        seq: A length that it takes.
        fixed: Whether it takes that length alone.
        grid: Height and width, where a row is a grid.
        masked: The same call with a padding mask, where there is one.
        unsaid: The same call without positions, where these may be left out.
        others: The same call with positions said by another of its parameters, by their names.
        by_guess: Whether nothing but numbers says that an argument is positions or a length.
    """

    subject: Subject
    run: Run
    text: str
    dim: int
    layout: str
    declared: bool
    moves: str | None
    scale: float | None
    seq: int = SEQ
    fixed: bool = False
    grid: tuple[int, int] | None = None
    masked: Callable[[Any, Tensor, Tensor], Tensor] | None = None
    unsaid: Run | None = None
    others: tuple[tuple[str, Run], ...] = ()
    by_guess: bool = False
    longest_found: dict[int, int] = field(default_factory=dict)

    kind = "added"

    def call(self, x: Tensor, positions: Tensor | None = None, by: Any = None) -> Tensor:
        """What it makes of x ``[batch, seq, dim]``."""
        return self.run(self.subject.fresh() if by is None else by, x.clone(), positions)

    def added(
        self,
        seq: int | None = None,
        *,
        positions: Tensor | None = None,
        batch: int = 1,
        dtype: torch.dtype = torch.float32,
        by: Any = None,
    ) -> Tensor:
        """What is added to embeddings of zeros, ``[batch, seq, dim]``."""
        seq = seq or (len(positions) if positions is not None else self.seq)
        made = self.call(torch.zeros(batch, seq, self.dim, dtype=dtype), positions, by)
        return made.expand(batch, *made.shape[1:])

    def rows(self, seq: int, by: Any = None) -> Tensor:
        """Row p is what position p receives, ``[seq, dim]`` float64."""
        return self.added(seq, by=by)[0].double()

    def longest(self, most: int) -> int:
        """The most positions up to ``most`` for which it answers.

        Raises:
            NotAskedError: It takes none of the lengths that were tried.
        """
        if self.fixed:
            return self.seq
        if most not in self.longest_found:
            self.longest_found[most] = self._longest(most)
        return self.longest_found[most]

    def _longest(self, most: int) -> int:
        most = max(self.seq, min(most, 2**24 // self.dim))
        for count in (most, *(n for n in lengths_of(self.subject.fresh()) if self.seq <= n < most)):
            if self.takes(count) and (count == most or not self.takes(count + 1)):
                return count
        found = most_taken(self.takes, most)
        if not found:
            raise NotAskedError("it takes none of the lengths that were tried")
        return found

    def takes(self, seq: int) -> bool:
        """Whether it answers for so many positions."""
        try:
            self.added(seq)
        except NotAskedError:
            return False
        return True

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        axes = added_layouts.SAID[self.layout]
        what = "gives a table to add" if self.scale is None else f"adds to {axes}"
        where = f", first position said by {self.moves}" if self.moves else ""
        return f"{what} of width {self.dim}{where}; called as {self.text}"


@dataclass(frozen=True)
class Candidate:
    view: Added
    fit: int  # 2: the sequence axis alone carries the position; 1: another one too; 0: none


def added_of(
    subject: Subject, layout: str | None, width: int | None, *, fixed: bool = False
) -> Added:
    """Find out how something is called that adds to embeddings.

    With ``fixed`` the lengths are tried that it seems built for, as those of vision transformers.

    Raises:
        CannotCheckError: It does not, in any form known here, or adds nothing (yet).
    """
    declared = declared_layout(subject.fresh())
    said = layout or (declared if declared in added_layouts.LAYOUTS else None)
    if not orders(said, added_layouts.LAYOUTS):
        raise CannotCheckError(f"nothing that is added to embeddings is laid out as {said}")
    best: Candidate | None = None
    unfit: list[str] = []
    for candidate in _candidates(subject, said, width, fixed, unfit):
        if best is None or candidate.fit > best.fit:
            best = candidate
        if best.fit == 2:
            break
    if best is None and unfit:
        raise NearlyError(unfit[0])
    if best is None:
        raise CannotCheckError("nothing that is added to embeddings")
    return best.view


def _candidates(
    subject: Subject, said: str | None, width: int | None, fixed: bool, unfit: list[str]
) -> Iterator[Candidate]:
    thing = subject.fresh()
    for text, find in callables_of(thing):
        named = {p.name: p.role for p in parameters_of(find(thing))}
        for parameters in assignments(find(thing)):
            by_guess = any(p.required and p.role not in ("x", named[p.name]) for p in parameters)
            if by_guess and (said or getattr(thing, "padding_idx", None) is not None):
                continue  # its axes are said, or ids of tokens: these are no positions
            for uses in _uses(parameters):
                for found in _layouts(
                    subject, said, width, text, find, parameters, uses, fixed, unfit
                ):
                    found.view.by_guess = by_guess
                    other = added_refusals.no_positions(found.view) if by_guess else None
                    if other is None:
                        yield found
                    else:
                        unfit.append(other)


def _uses(parameters: list[Parameter]) -> Iterator[frozenset[str]]:
    """Which optional roles are said: positions if they can be, or an offset, or nothing."""
    roles = {p.role for p in parameters}
    required = {p.role for p in parameters if p.required}
    content = {"x"} & roles
    if not required and content:
        for choice in ({"positions"}, {"offset"}, set()):
            if choice <= roles:
                yield frozenset({"x", *choice})
        return
    for choice in ({"positions"}, {"offset"}):
        if choice <= roles:
            yield frozenset(choice)
    if not required and {"length", "dim"} & roles:
        yield frozenset({"length", "dim"})
    if content or not {"positions", "offset"} & required:
        yield frozenset()


GRIDS = ("bhwd", "bdhw")

FORMS = ({"x"}, {"positions"}, {"length"}, {"length", "dim"}, {"positions", "dim"}, {"grid", "dim"})
FORMS_SAID = {"x", "positions", "offset", "length", "dim", "grid", "mask", "dtype"}


def _layouts(
    subject: Subject,
    said: str | None,
    width: int | None,
    text: str,
    find: Callable[[Any], Any],
    parameters: list[Parameter],
    uses: frozenset[str],
    fixed: bool,
    unfit: list[str],
) -> Iterator[Candidate]:
    required = {p.role for p in parameters if p.required}
    if not required <= FORMS_SAID or not (required | uses) & {
        "x",
        "positions",
        "length",
        "grid",
        "mask",
    }:
        return
    has_content = "x" in required | uses
    widths = (width,) if width else widths_of(subject.fresh())
    lengths = (SEQ, 16)
    if fixed:
        lengths = tuple(_lengths(subject.fresh()))
    for layout in orders(said, added_layouts.LAYOUTS) if has_content else ("sd",):
        for dim in widths[:8]:
            # of maps some that are no squares, so that height and width are told apart
            for seq in (80, 16) if layout in GRIDS and not fixed else lengths:
                if not 2 <= seq * dim <= 2**24:
                    continue
                grid = _grid(seq)
                if layout in GRIDS and grid is None:
                    continue
                run = _runner(find, parameters, uses, layout, grid or (1, seq))
                view = Added(
                    subject, run, text_of(text, parameters, uses), dim, layout, said is not None,
                    _moves(required | uses), None, seq,
                )  # fmt: skip
                if "mask" in {p.role for p in parameters}:
                    view.masked = _masker(find, parameters, uses, layout)
                plain = uses - {"positions", "offset"}
                if view.moves in uses - required and has_content:
                    view.unsaid = _runner(find, parameters, plain, layout, grid or (1, seq))
                view.others = tuple(
                    (p.name, _runner(find, parameters, plain | {p.role}, layout, grid or (1, seq)))
                    for p in parameters
                    if p.role in ("positions", "offset") and p.role not in required | uses
                )
                if layout in GRIDS or "grid" in required:
                    view.grid, view.fixed = grid, True
                try:
                    found = _measured(view)
                except OtherResultError as error:
                    unfit += [str(error)] if isinstance(error, UnfitError) else []
                    break
                if found is not None:
                    yield found
                    break


def _lengths(thing: Any) -> Iterator[int]:
    """Lengths that it may take alone: a class token may have a row of a table, or none."""
    for n in lengths_of(thing)[:6]:
        yield from (n, n - 1)
        if isqrt(n) ** 2 == n:
            yield n + 1


def _grid(seq: int) -> tuple[int, int] | None:
    """A grid of so many points; not a square, where there is another."""
    return {7: None, 16: (4, 4)}.get(seq) or next(
        ((h, seq // h) for h in range(int(seq**0.5), 1, -1) if seq % h == 0), None
    )


def _moves(roles: set[str | None]) -> str | None:
    return "positions" if "positions" in roles else "offset" if "offset" in roles else None


def _runner(
    find: Callable[[Any], Any],
    parameters: list[Parameter],
    uses: frozenset[str],
    layout: str,
    grid: tuple[int, int],
) -> Run:
    roles = {p.role for p in parameters if p.required or p.role in uses}
    taken: list[int] = []  # the shape of positions that it takes, once that is known

    def run(thing: Any, x: Tensor, positions: Tensor | None) -> Tensor:
        seq, dim = x.shape[1], x.shape[2]
        here = grid if grid[0] * grid[1] == seq else (1, seq)
        line = torch.arange(seq) if positions is None else positions
        values = {
            "x": added_layouts.laid_out(x, layout, here), "positions": line,
            "offset": int(line.flatten()[0]), "length": seq, "dim": dim, "dtype": x.dtype,
            "grid": here[0], "mask": torch.ones(len(x), seq, dtype=torch.long),
        }  # fmt: skip
        problem: CallFailedError | None = None
        shapes = (line,)
        if line.ndim == 1:
            by_rows = line[None].expand(len(x), -1)
            shapes = (by_rows, line) if layout == "bsd" and "x" in roles else (line, by_rows)
            shapes += line[:, None], line.to(torch.float32)
        takes_some = "positions" in {p.role for p in parameters}
        for kind, some in enumerate(shapes if takes_some else (line,)):
            if line.ndim == 1 and taken and kind != taken[0]:
                continue  # what it refuses in this shape, another would make something else of
            try:
                made = bound(find(thing), parameters, {**values, "positions": some}, uses)
                made = as_tensor(made)
                if not isinstance(made, Tensor) or not made.is_floating_point():
                    raise OtherResultError(f"it gives {type(made).__name__}")
                made = added_layouts.taken_back(made, layout, seq, dim)
                if len(made) not in (1, len(x)):
                    raise CallFailedError(f"{len(x)} rows give {len(made)}")
                if line.ndim == 1 and not taken:
                    taken.append(kind)
                return made
            except OtherResultError:
                raise
            except CallFailedError as error:
                problem = problem or error
        assert problem is not None
        raise problem

    return run


def _masker(
    find: Callable[[Any], Any], parameters: list[Parameter], uses: frozenset[str], layout: str
) -> Callable[[Any, Tensor, Tensor], Tensor] | None:
    """The same call with a padding mask; rows that have a batch alone can be padded."""
    if layout not in ("bsd", "sd"):
        return None

    def masked(thing: Any, x: Tensor, mask: Tensor) -> Tensor:
        values = {"x": x, "mask": mask, "offset": 0, "dtype": x.dtype, "length": x.shape[1]}
        uses_mask = (uses - {"positions", "offset"}) | {"mask"}
        made = as_tensor(bound(find(thing), parameters, values, uses_mask))
        if not isinstance(made, Tensor) or made.shape != x.shape:
            raise CallFailedError("its result has no row for each row of the batch")
        return made

    return masked


def _measured(view: Added) -> Candidate | None:
    """Whether it adds at all, with which factor, and which axis carries the position."""
    batch = 1 if view.layout == "sd" else BATCH
    zeros = torch.zeros(batch, view.seq, view.dim)
    x = torch.randn(batch, view.seq, view.dim)
    try:
        thing = view.subject.fresh()
        empty, once, twice = view.call(zeros, by=thing), view.call(x), view.call(2 * x)
    except CallFailedError:
        return None
    if not torch.isfinite(empty).all():
        return None
    scale = _scale(view, empty, once, twice, x)
    if scale is not None and not empty.any() and has_zeros(view.subject.fresh()):
        raise AddsNothingError(
            "it adds nothing, as where a table is still of zeros. Give it numbers first, as "
            "torch.nn.init.normal_ of the table does"
        )
    if scale is None or (scale and not empty.any()):
        if not torch.equal(empty, view.call(zeros)):
            raise UnfitError(added_refusals.CHANCE)
        if (
            view.layout != "sd"
            and once.shape == x.shape
            and added_refusals.is_bounded(view, x, once)
        ):
            raise UnfitError(added_refusals.NO_SUM)
        raise OtherResultError("it changes content otherwise than by a sum")
    view.scale = scale or None
    along = varies(empty, 1) > 0
    across = len(empty) > 1 and varies(empty, 0) > 1e-6
    if view.grid is not None:  # axes that were taken for others leave points alike
        across = across or len(empty[0].double().unique(dim=0)) < view.seq
    if view.grid is None and not view.fixed:
        view.fixed = not view.takes(view.seq - 1)
    return Candidate(view, 2 if along and not across else 1 if along or across else 0)


def _scale(view: Added, empty: Tensor, once: Tensor, twice: Tensor, x: Tensor) -> float | None:
    """The factor s of f(x) = s·x + table; 0 for a table alone; None for another function."""
    if once.shape != x.shape or torch.equal(once.double(), empty.double()):
        return 0.0 if once.shape == empty.shape and torch.equal(once, empty) else None
    change = (once - empty).double()
    scale = ((change * x).sum() / (x * x).sum()).item()
    off = max(
        (change - scale * x).abs().max().item(), (twice - empty - 2 * change).abs().max().item()
    )
    return scale if scale > 0 and off < 1e-3 * max(1.0, scale) * x.abs().max().item() else None
