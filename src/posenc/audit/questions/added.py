"""Questions to what adds to embeddings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.added import Added
from posenc.audit.adapters.calls import keeping_gradients, lengths_of, varies, watching
from posenc.audit.identity import sinusoids
from posenc.audit.questions import rows
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_ORDER,
    NO_PLACE,
    NO_STATE,
    Answer,
    Question,
    fault,
    question,
)
from posenc.audit.report import Fault, NotAskedError

ROUNDING = 1e-5
"""What two ways to compute one number in float32 may be apart."""


@dataclass
class AddedInquiry:
    """A subject that adds, with what several questions need of it."""

    view: Added
    length: int
    errors: dict[int, float] = field(default_factory=dict)

    @cached_property
    def near(self) -> Tensor:
        """Its first rows, float64."""
        return self.view.rows(min(64, self.view.longest(64)))

    @cached_property
    def learns(self) -> bool:
        """Whether it has parameters that shape what is added."""
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(p.numel() > 4 for p in thing.parameters())

    @cached_property
    def sinusoid(self) -> sinusoids.Sinusoid | None:
        """The sinusoidal encoding that it is, if it is one."""
        if self.view.grid is not None or len(self.near) < 4:
            return None
        found = sinusoids.identify(self.near)
        if found is None:
            for dtype in (torch.bfloat16, torch.float16):
                found = found or sinusoids.with_rounded_frequencies(self.near, dtype)
        if found is None and (held := rows.is_held_in(self.near)):
            found = sinusoids.identify(self.near, sinusoids.COARSE[held])
        return found

    @cached_property
    def table(self) -> Tensor:
        """As many rows as are judged, float64."""
        return self.view.rows(self.view.longest(self.length))

    @cached_property
    def error(self) -> tuple[Tensor, Tensor]:
        """Some positions up to the length that is judged, and how far each row is from exact."""
        found = self.sinusoid
        if found is None:
            raise NotAskedError("what it should be is not known, so nothing can be held against it")
        size = min(len(self.table), self.length)
        line = torch.cat((torch.arange(min(size, 128)), torch.linspace(0, size - 1, 128).long()))
        line = line.unique()
        return line, (self.table[line] - found.exact(line)).abs().amax(1)

    @property
    def identity(self) -> str:
        """One line."""
        found = self.sinusoid
        if found is not None:
            size = min(len(self.table), self.length)
            off = self.error[1].max().item()
            name = type(found.encoding).__name__
            said = f"{found.said}: equal to posenc.{name}({_arguments(found)}) within {off:.1g} "
            return said + f"to position {size - 1:,}"
        if self.learns:
            return (
                f"a learned table, at least {self.view.longest(self.length):,} rows of "
                f"{self.view.dim}"
            )
        if self.view.grid is not None:
            return _grid_identity(self)
        return ""


def _arguments(found: sinusoids.Sinusoid) -> str:
    ours = found.encoding
    said = [str(ours.dim)]
    said += [f"base={ours.base:.10g}"] if ours.base != 10_000 else []
    said += [f"convention={ours.convention.name!r}"] if ours.convention.name != "paper" else []
    return ", ".join(said + ([f"offset={ours.offset}"] if ours.offset else []))


def _grid_identity(inquiry: AddedInquiry) -> str:
    """MAE's and the like: each half of the channels knows one axis, and is sinusoidal in it."""
    assert inquiry.view.grid is not None
    height, width = inquiry.view.grid
    table = inquiry.view.added()[0].double().reshape(height, width, -1)
    half = table.shape[-1] // 2
    for name, part in (("width", table[0, :, :half]), ("height", table[:, 0, :half])):
        found = sinusoids.identify(part) if len(part) >= 4 else None
        if found is not None:
            other = "height" if name == "width" else "width"
            return (
                f"a grid encoding: {name} in the first half of the channels, {other} in the "
                f"second, each {found.said}"
            )
    return ""


def _call(inquiry: AddedInquiry) -> str:
    return inquiry.view.text.replace("…", "positions") if inquiry.view.moves else "subject(x)"


# Order.


@question(essential=True)
def encodes_the_sequence(inquiry: AddedInquiry) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    view = inquiry.view
    batch = 1 if view.layout == "sd" else 3
    made = view.added(view.seq, batch=batch)
    raw = view.call(torch.zeros(batch, view.seq, view.dim))
    across = varies(raw, 0) if len(raw) > 1 else 0.0
    along = varies(made, 1)
    shape = "torch.zeros(3, 7, d)"
    if across > 1e-6:
        mixed = ", so sequence and batch are mixed up" if along > 1e-6 else ""
        return fault(
            "batch-axis-encoded",
            "wrong",
            f"equal rows of a batch receive encodings up to {across:.3g} apart{mixed}",
            across,
            "import torch\n"
            f"x = {shape}  # [batch, seq, dim]\n"
            "(subject(x)[1] - subject(x)[0]).abs().max()",
        )
    if along <= 1e-9:
        return fault(
            "encodes-nothing",
            "wrong",
            "all positions of a row receive the same",
            along,
            f"import torch\nx = {shape}\nsubject(x)[0].diff(dim=0).abs().max()",
            1.0,
        )
    said = f"neighbors up to {along:.3g} apart, equal rows of a batch {across:.1g}"
    if view.layout == "sbd" and not view.declared:
        return fault(
            "takes-sequence-first",
            "note",
            "axis 0 carries the position: it takes [seq, batch, dim]. Fed with [batch, seq, dim] "
            "it would encode the index in the batch",
            along,
        )
    return said


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(inquiry: AddedInquiry) -> Answer:
    """Does every position receive a row of its own, also beyond the length it is built for?"""
    view = inquiry.view
    if view.grid is not None:
        return _grid_apart(inquiry)
    built = [n for n in lengths_of(view.subject.fresh()) if 8 <= n <= 2**17]
    most = min(max([inquiry.length, *(2 * n + 2 for n in built[:3])]), 2**22 // view.dim)
    said = "" if view.fixed else _truncation(view, built)
    table = inquiry.table if view.fixed else view.rows(view.longest(most))
    line = torch.arange(len(table))
    found = rows.beyond(
        table,
        line,
        "the encoding",
        lambda p, q: (
            "import torch\n"
            f"made = subject(torch.zeros(1, {q + 1}, {view.dim}))\n"
            f"(made[0, {p}] - made[0, {q}]).abs().max()"
        ),
    )
    if isinstance(said, Fault):
        return [said]
    return found or f"{len(table):,} positions, {len(table):,} rows{said}"


def _truncation(view: Added, built: list[int]) -> Fault | str:
    """What becomes of rows longer than the table."""
    for n in built[:2]:
        try:
            view.added(n + 5)
        except NotAskedError as reason:
            if f"{n + 5} tokens give {n}" in str(reason) or "rows" in str(reason):
                return fault(
                    "truncated-silently",
                    "wrong",
                    f"{reason}: the tokens beyond are lost without a word",
                    n,
                    f"import torch\nsubject(torch.zeros(1, {n + 5}, {view.dim})).shape",
                )
            return f"; it refuses more than {n:,}"
    return ""


def _grid_apart(inquiry: AddedInquiry) -> Answer:
    assert inquiry.view.grid is not None
    table = inquiry.view.added()[0].double()
    different = len((table * 1e6).round().unique(dim=0))
    if different < len(table):
        return fault(
            "positions-shared",
            "wrong",
            f"{len(table)} points of a grid of {inquiry.view.grid} receive {different} different "
            "encodings",
            different,
            expected=len(table),
        )
    return f"{different} points of the grid, all different"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(inquiry: AddedInquiry) -> Answer:
    """Does a position receive the same in a short row and in a long one?"""
    view = inquiry.view
    if view.fixed:
        raise NotAskedError(f"it takes rows of {view.seq} tokens alone")
    long = view.longest(40)
    short = max(2, long // 2)
    far = (view.rows(long)[:short] - view.rows(short)).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart between {short} and {long} tokens"
    return fault(
        "depends-on-length",
        "wrong",
        f"position by position, {short} and {long} tokens receive encodings up to {far:.3g} apart",
        far,
        "import torch\n"
        f"a, b = (subject(torch.zeros(1, n, {view.dim})) for n in ({short}, {long}))\n"
        f"(a - b[:, :{short}]).abs().max()",
    )


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(inquiry: AddedInquiry) -> Answer:
    """Does a token behind a cache receive what it does in the whole row?"""
    view = inquiry.view
    if not view.moves:
        raise NotAskedError("the first position cannot be said")
    whole = view.rows(20)
    starts = (0, 1, 7, 19)
    steps = torch.stack([_step(view, p) for p in starts])
    far = (steps - whole[list(starts)]).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart at positions 0, 1, 7, 19"
    for shift in (1, -1):
        other = torch.stack([_step(view, p + shift) for p in starts[2:]])
        if (other - whole[list(starts[2:])]).abs().max() < ROUNDING:
            return fault(
                "off-by-one-after-cache",
                "wrong",
                f"behind a cache token p receives what token p − {shift} does in the whole row "
                f"({far:.3g} off)".replace("− -1", "+ 1"),
                far,
                "import torch\n"
                f"x = torch.zeros(1, 20, {view.dim})\n"
                f"# {_call(inquiry)} of x[:, 7:8] at 7 against subject(x)[:, 7:8]",
            )
    return fault(
        "decoding-differs-from-prefill",
        "wrong",
        f"tokens given one by one receive encodings up to {far:.3g} away from those of the row",
        far,
        "import torch\n"
        f"x = torch.zeros(1, 20, {view.dim})\n"
        f"# {_call(inquiry)} of x[:, 7:8] at 7 against subject(x)[:, 7:8]",
    )


def _step(view: Added, position: int) -> Tensor:
    return view.added(1, positions=torch.tensor([position]))[0, 0].double()


@question(after=NO_LENGTH)
def padding_moves_nothing(inquiry: AddedInquiry) -> Answer:
    """Do padding tokens before a row leave the encodings of its tokens as they are?"""
    masked = inquiry.view.masked
    if masked is None:
        raise NotAskedError("it is told of no padding mask")
    thing, view = inquiry.view.subject.fresh(), inquiry.view
    seq, pad = 8, 3
    mask = torch.ones(2, seq, dtype=torch.long)
    mask[1, :pad] = 0
    made = masked(thing, torch.zeros(2, seq, view.dim), mask).double()
    far = (made[1, pad:] - made[0, : seq - pad]).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart behind {pad} padding tokens"
    return fault(
        "padding-shifts-positions",
        "wrong",
        f"behind {pad} padding tokens on the left a row receives encodings up to {far:.3g} away "
        "from those without",
        far,
        "import torch\n"
        f"x, mask = torch.zeros(1, 8, {view.dim}), torch.ones(1, 8).long()\n"
        "mask[:, :3] = 0  # compare subject(x, mask)[:, 3:] with subject(x[:, 3:], mask[:, 3:])",
    )


# What a call leaves behind.


@question()
def leaves_its_input_alone(inquiry: AddedInquiry) -> Answer:
    """Is the input after the call what it was before?"""
    view = inquiry.view
    return untouched(lambda: view.call(torch.randn(1, view.seq, view.dim)))


def untouched(call: Callable[[], object]) -> Answer:
    """The same for any place."""
    with watching() as seen:
        call()
    if not seen:
        raise NotAskedError("it takes no tensor")
    name, far = max(seen.items(), key=lambda item: item[1])
    if far == 0:
        return f"not a bit of {', '.join(seen)} changed"
    return fault(
        "input-written",
        "wrong",
        f"the tensor given as {name} changes by up to {far:.3g}",
        far,
        "import torch\n"
        f"{name} = torch.randn(2, 7, 64); kept = {name}.clone()\n"
        f"subject({name}); ({name} - kept).abs().max()",
    )


@question()
def keeps_no_state(inquiry: AddedInquiry) -> Answer:
    """Does a call leave no trace in the next: not its length, nor its dtype?"""
    view = inquiry.view
    seq = view.seq if view.fixed else view.longest(29)
    return state(
        lambda n, dtype, by: view.added(n, dtype=dtype, by=by)[0],
        view.subject.fresh,
        seq,
        view.fixed or view.longest(inquiry.length * 2) <= seq,
        view.longest(min(2 * inquiry.length, 16_384)),
        view.dim,
    )


def state(
    call: Callable[[int, torch.dtype, Any], Tensor],
    fresh: Callable[[], Any],
    seq: int,
    fixed: bool,
    far: int,
    dim: int,
) -> Answer:
    """The same for any place: ``call(seq, dtype, by)`` gives rows."""
    clean = {seq: call(seq, torch.float32, fresh())}
    longer = min(100, far)
    if not fixed and longer > seq:
        clean[longer] = call(longer, torch.float32, fresh())
    checked = []
    for name, dtype, before, then in (
        ("state-between-calls", torch.float32, seq, seq),
        ("history-changes-result", torch.float32, far, seq),
        ("state-between-calls", torch.float32, max(2, seq // 2), seq),
        ("state-between-calls", torch.float32, longer // 2, longer),
        ("first-dtype-cached", torch.bfloat16, seq, seq),
        ("first-dtype-cached", torch.float16, seq, seq),
    ):
        if then not in clean:
            continue
        if fixed and before != seq:
            continue
        used = fresh()
        try:
            call(before, dtype, used)
        except NotAskedError:
            continue
        try:
            again = call(then, torch.float32, used)
        except NotAskedError as reason:
            return fault(
                name,
                "wrong",
                f"after a call with {before:,} tokens, {then} tokens are refused: {reason}",
                1.0,
                "import torch\n"
                f"subject(torch.zeros(1, {before}, {dim}, dtype={dtype}))\n"
                f"subject(torch.zeros(1, {then}, {dim}))",
            )
        checked.append(name)
        off = (again.double() - clean[then].double()).abs().max().item()
        if off > 0 or again.dtype != clean[then].dtype:
            kind = str(dtype).removeprefix("torch.")
            return fault(
                name,
                "wrong",
                f"after a call with {before:,} tokens in {kind}, {then} tokens in float32 come "
                f"out as {str(again.dtype).removeprefix('torch.')}, up to {off:.3g} away from a "
                "fresh one",
                off or 1.0,
                "import torch\n"
                f"subject(torch.zeros(1, {before}, {dim}, dtype={dtype}))\n"
                f"subject(torch.zeros(1, {then}, {dim}))  # against a fresh subject",
            )
    if not checked:
        raise NotAskedError("it took none of the calls between")
    return f"bit for bit the same after {len(checked)} other calls"


@question(after=(*NO_LENGTH, "positions-in-16-bits", "first-dtype-cached"))
def survives_a_cast(inquiry: AddedInquiry) -> Answer:
    """After ``.bfloat16()``, is it as good as a table rounded once?"""
    view, module = inquiry.view, inquiry.view.subject.fresh()
    if not isinstance(module, nn.Module):
        raise NotAskedError("it is no module")
    if inquiry.learns:
        raise NotAskedError("it has parameters, which a cast must round")
    seq = view.longest(min(inquiry.length, 4096))
    exact = view.rows(seq)
    cast = view.added(seq, dtype=torch.bfloat16, by=module.bfloat16())[0].double()
    off = (cast - exact).abs().max().item()
    if off < 4 * 2**-8 * exact.abs().max().item():
        return f"up to {off:.1g} off over {seq:,} positions, as one rounding is"
    return fault(
        "cast-breaks-it",
        "lossy",
        f"after .bfloat16() encodings of {seq:,} positions are up to {off:.3g} off; one rounding "
        "costs 0.004",
        off,
        "import copy, torch\n"
        "half = copy.deepcopy(subject).bfloat16()\n"
        f"half(torch.zeros(1, {seq}, {view.dim}).bfloat16()) - subject(torch.zeros(1, {seq}, "
        f"{view.dim}))",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "input-written"))
def keeps_the_dtype(inquiry: AddedInquiry) -> Answer:
    """Do bfloat16 embeddings come back as bfloat16, with positions apart as far as they can be?"""
    view = inquiry.view
    seq = view.longest(min(inquiry.length, 2048))
    made = view.added(seq, dtype=torch.bfloat16)[0]
    exact = view.rows(seq)
    best, own = rows.distinct_in(exact, torch.bfloat16), len(made.unique(dim=0))
    off = (made.double() - exact).abs().max().item()
    coarse = off > 5 * 2**-8 * max(1.0, exact.abs().max().item())
    fewer = own < best - max(2, best // 50) and view.grid is None
    if made.dtype == torch.bfloat16 and (coarse or fewer):
        return fault(
            "positions-in-16-bits",
            "lossy",
            f"in bfloat16 {seq:,} positions receive {own:,} different encodings, up to {off:.3g} "
            f"off; rounding the table once leaves {best:,}",
            off,
            "import torch\n"
            f"x = torch.zeros(1, {seq}, {view.dim}, dtype=torch.bfloat16)\n"
            "len(subject(x)[0].unique(dim=0))",
            best,
        )
    if view.scale is not None and made.dtype != torch.bfloat16:
        return fault(
            "dtype-changed",
            "note",
            f"bfloat16 embeddings come back as {str(made.dtype).removeprefix('torch.')}: the rest "
            "of the model runs in that unless it is cast",
            1.0,
        )
    return f"{own:,} different rows of {seq:,}"


@question()
def gradients_flow(inquiry: AddedInquiry) -> Answer:
    """Does every parameter get a gradient, and the input too?"""
    view, thing = inquiry.view, inquiry.view.subject.fresh()
    seq = view.seq if view.fixed else view.longest(16)
    x = torch.randn(1, seq, view.dim, requires_grad=True)
    return gradients(thing, lambda: view.run(thing, x, None), x if view.scale is not None else None)


def gradients(thing: object, call: Callable[[], Tensor], x: Tensor | None) -> Answer:
    """The same for any place."""
    learned = dict(thing.named_parameters()) if isinstance(thing, nn.Module) else {}
    learned = {name: p for name, p in learned.items() if p.requires_grad}
    if not learned and x is None:
        raise NotAskedError("it has no parameters and takes no content")
    made = _with_gradients(call)
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
    wanted = [*learned.values(), *([x] if x is not None else [])]
    if not made.requires_grad:
        found: tuple[Tensor | None, ...] = (None,) * len(wanted)
    else:
        found = torch.autograd.grad(
            (made * weights.to(made.dtype)).sum(), wanted, allow_unused=True
        )
    without = [n for n, g in zip(learned, found, strict=False) if g is None or not g.any()]
    if without:
        return fault(
            "parameter-without-gradient",
            "wrong",
            f"{', '.join(without)}: no gradient reaches it, so it is never trained",
            len(without),
            "import torch\n"
            "out = subject(torch.randn(1, 16, 64)); out.sum().backward()\n"
            "[n for n, p in subject.named_parameters() if p.grad is None]",
        )
    if x is not None and (found[-1] is None or not found[-1].any()):
        return fault(
            "gradient-cut",
            "wrong",
            "no gradient reaches what it is given: layers before it are not trained",
            0.0,
            "import torch\n"
            "x = torch.randn(1, 16, 64, requires_grad=True)\n"
            "subject(x).sum().backward(); x.grad",
            1.0,
        )
    return f"{len(learned)} parameters, {'and content' if x is not None else 'no content'}"


def _with_gradients(call: Callable[[], Tensor]) -> Tensor:
    """Adapters call without gradients; here a call keeps them."""
    with keeping_gradients():
        return call()


# What it is.


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared"))
def is_a_known_function(inquiry: AddedInquiry) -> Answer:
    """Is it one of the published encodings, as far as numbers show?"""
    found, near = inquiry.sinusoid, inquiry.near
    show = f"import torch\nsubject(torch.zeros(1, 8, {inquiry.view.dim}))[0]"
    if found is not None:
        return _slips(found, show)
    if inquiry.learns:
        raise NotAskedError("its numbers are learned; any table is a right one")
    if inquiry.view.grid is not None:
        if not _grid_identity(inquiry):
            raise NotAskedError("it encodes a grid by no formula that is known here")
        return "each half of the channels is one axis' sinusoidal encoding"
    if (which := sinusoids.twice(near)) is not None:
        return fault(
            "sine-twice",
            "wrong",
            f"both channels of each pair hold the same {which}: positions that mirror each other "
            "cannot be told apart, and a shift is no linear map",
            1.0,
            show,
        )
    if sinusoids.is_sinusoidal(near):
        return fault(
            "unknown-frequencies",
            "wrong",
            "every channel is a sine of position, but of frequencies or phases that no convention "
            "has",
            1.0,
            show,
        )
    if len(near) < 6:
        raise NotAskedError("too few rows to tell")
    return fault(
        "unknown-function",
        "note",
        "it is no encoding that is known here; it was asked for order, decoding and state alone",
        0.0,
    )


def _slips(found: sinusoids.Sinusoid, show: str) -> Answer:
    ours = found.encoding
    if ours.convention.name == "double_exponent":
        return fault(
            "wrong-exponent",
            "wrong",
            f"channel j turns with {ours.convention.formula}: the channel index stands where the "
            "paper's i counts pairs. Old checkpoints load with "
            "Sinusoidal(convention='double_exponent')",
            1.0,
            show,
        )
    if ours.base < 1:
        return fault(
            "wrong-exponent",
            "wrong",
            f"frequencies grow with the channel instead of falling: base {ours.base:.3g}, a sign "
            "is missing in the exponent",
            ours.base,
            show,
            10_000.0,
        )
    if ours.base in (100.0, 1e8) or abs(ours.base - 100.0) < 0.5:
        return fault(
            "wrong-exponent",
            "wrong",
            f"frequencies fall as those of base {ours.base:,.6g}: the exponent has half or twice "
            "what it should",
            ours.base,
            show,
            10_000.0,
        )
    if abs(found.size - 1) > 1e-4:
        return fault(
            "table-scaled",
            "wrong",
            f"sines and cosines are multiplied with {found.size:.4g}",
            found.size,
            show,
            1.0,
        )
    if ours.base not in sinusoids.KNOWN:
        return fault(
            "unusual-base", "note", f"base {ours.base:,.6g} is that of no known model", ours.base
        )
    return f"{found.off:.1g} from {found.said}"


@question(after=NO_PLACE)
def is_precise(inquiry: AddedInquiry) -> Answer:
    """Up to the length that counts, is what it adds that of exact arithmetic?"""
    line, off = inquiry.error
    table, last = inquiry.table, int(line[-1])
    marks = [m for m in (10, 100, 1_000, 10_000, 100_000) if m < last]
    inquiry.errors |= {m: off[line <= m].max().item() for m in [*marks, last]}
    worst = off.max().item()
    show = f"import torch\nsubject(torch.zeros(1, {last + 1}, {inquiry.view.dim}))[0, -1]"
    held = rows.is_held_in(table[:512])
    if sinusoids.identify(inquiry.near) is None and held is None:
        return fault(
            "frequencies-in-16-bits",
            "lossy",
            f"frequencies are rounded to 16 bits: at position {last:,} encodings are {worst:.3g} "
            "off",
            worst,
            show,
        )
    if held:
        return fault(
            "table-in-16-bits",
            "lossy",
            f"every number of the float32 table is one of {held}: up to {worst:.3g} off",
            worst,
            show,
        )
    if worst > LOSSY:
        first = int(line[off > LOSSY][0])
        return fault(
            "precision-lost",
            "lossy",
            f"from position {first:,} on encodings are more than {LOSSY} off, up to {worst:.3g} "
            f"at {int(line[off.argmax()]):,}; computed exactly they are off by 3e-08",
            worst,
            show,
        )
    return f"up to {worst:.1g} off to position {last:,}"


LOSSY = 2.0**-7
"""An error that one rounding of embeddings to bfloat16 does not hide."""

QUESTIONS: tuple[Question, ...] = (
    encodes_the_sequence,
    leaves_its_input_alone,
    keeps_no_state,
    same_at_another_length,
    positions_stay_apart,
    decodes_as_it_prefills,
    padding_moves_nothing,
    is_a_known_function,
    is_precise,
    keeps_the_dtype,
    survives_a_cast,
    gradients_flow,
)
