"""Questions to what gives a bias for scores."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from posenc.audit.adapters.bias import SEQ, BiasView
from posenc.audit.identity import biases
from posenc.audit.questions.asking import NO_STATE, Answer, Question, fault, question
from posenc.audit.questions.traces import gradients, untouched
from posenc.audit.report import CallFailedError, NotAskedError
from posenc.numerics import slopes

ROUNDING = 1e-4

FAR, FAR_SQUARE = 4096, 1024
"""How many keys are looked at, of one query and where all queries have to be asked for."""

FAR_ROWS = 600
"""Up to which distance rows of a table are looked up."""


@dataclass
class BiasInquiry:
    """A subject that gives a bias, with what several questions need of it."""

    view: BiasView
    length: int
    errors: dict[int, float] = field(default_factory=dict)

    @cached_property
    def seen(self) -> Tensor:
        """What a softmax sees of the bias of a square, float64."""
        seq = self.view.fixed or 2 * SEQ
        return self.view.seen(seq, seq)

    @cached_property
    def learns(self) -> bool:
        """Whether it has parameters."""
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(p.requires_grad for p in thing.parameters())

    @cached_property
    def linear(self) -> biases.Linear | None:
        """Its slopes, if it falls linearly."""
        return biases.linear(self.seen)

    @cached_property
    def buckets(self) -> biases.Buckets | None:
        """The buckets by which it reads a table, if it does."""
        thing = self.view.subject.fresh()
        if not isinstance(thing, nn.Module):
            return None
        seq = min(FAR_ROWS, self.view.fixed or FAR_ROWS)
        try:
            square = self.view.bias(seq, seq, by=thing).double()
        except CallFailedError:
            return None
        found = biases.looked_up(square, thing)
        return biases.buckets(*found) if found is not None else None

    def longest_row(self, dtype: torch.dtype) -> Tensor:
        """The bias of the last of as many keys as it gives, ``[heads, keys]``.

        Raises:
            NotAskedError: It gives none of 64 keys or more.
        """
        view, length = self.view, min(self.length, FAR)
        while True:
            try:
                size = length if view.rows or view.key_only else min(length, FAR_SQUARE)
                return view.bias(1 if view.rows else size, size, dtype)[:, -1]
            except NotAskedError:
                length //= 2
                if length < 64:
                    raise

    @cached_property
    def parting(self) -> biases.Parting | None:
        """Where a linear bias leaves its line, if it does; None too where no long row is given."""
        if self.linear is None or self.view.slopes_only or self.view.fixed:
            return None
        try:
            return biases.parting(self.longest_row(torch.float32), self.linear.fall)
        except NotAskedError:
            return None

    @property
    def identity(self) -> str:
        """One line."""
        if self.linear is not None and self.linear.said:
            return self._of_slopes(self.linear)
        if self.buckets is not None and self.buckets.kind == "t5":
            ours = self.buckets.ours(len(self.seen))
            return f"{self.buckets.said}: equal to {ours}, {self._looked_up(self.buckets)}"
        if self.buckets is not None and self.buckets.said:
            return f"{self.buckets.said}: {self._looked_up(self.buckets)}"
        if self.learns:
            return "a learned bias"
        return ""

    def _of_slopes(self, found: biases.Linear) -> str:
        """What it equals, if it does so in all heads and at every distance looked at."""
        if bool((found.fall < 0).any()) or self.parting is not None:
            return ""
        said = f"{found.said}: equal to {found.ours} within {100 * found.off:.1g} % of a slope"
        if biases.knows_later_keys(self.seen, found.fall):
            return said
        return f"{said}, for keys up to the query's; those after it receive another bias"

    def _looked_up(self, found: biases.Buckets) -> str:
        return f"bucket for bucket to distance {(len(found.index) - 1) // 2}"


def _show(inquiry: BiasInquiry, call: str) -> str:
    return (
        f"import torch\nbias = {inquiry.view.text.split('(')[0]}({call})\n# [heads, q_len, k_len]"
    )


@question(essential=True)
def tells_distances_apart(inquiry: BiasInquiry) -> Answer:
    """Does the bias differ between keys of one query?"""
    seen = inquiry.seen
    visible = torch.ones(seen.shape[-2:], dtype=torch.bool).tril()
    apart = seen[:, visible].nan_to_num(0.0).abs().max().item()
    if apart == 0:
        return fault(
            "encodes-nothing",
            "wrong",
            "all keys of a query receive the same bias",
            0.0,
            _show(inquiry, "8, 8"),
            1.0,
        )
    silent = int((seen[:, visible].nan_to_num(0.0).abs().amax(1) == 0).sum())
    if silent:
        return fault(
            "encodes-nothing",
            "wrong",
            f"{silent} of {len(seen)} heads have no bias at all",
            silent,
            _show(inquiry, "8, 8"),
        )
    return f"up to {apart:.3g} within a row"


@question(essential=True, after=("encodes-nothing", "depends-on-length", *NO_STATE))
def knows_distance_alone(inquiry: BiasInquiry) -> Answer:
    """Up to what a softmax cannot see, is the bias the same along each diagonal?"""
    if inquiry.view.fixed:
        raise NotAskedError(f"it takes {inquiry.view.fixed} tokens alone, as those of a window")
    seen = inquiry.seen
    seq = seen.shape[-1]
    each = torch.zeros(len(seen), dtype=torch.float64)  # a head may be 128 times another
    for back in range(1, seq):
        along = seen.diagonal(-back, 1, 2)
        if torch.isfinite(along).all():
            each = each.maximum((along - along[:, :1]).abs().amax(1))
    below = seen[:, torch.ones(seq, seq, dtype=torch.bool).tril()].nan_to_num(0, 0, 0)
    sizes = below.abs().amax(1)
    shares = each / sizes.masked_fill(sizes == 0, 1.0)
    head = int(shares.argmax())
    off, scale = each[head].item(), sizes[head].item()
    if shares[head] <= 2e-2:
        if inquiry.view.key_only:
            return fault(
                "key-only",
                "note",
                "all queries share one row: equal to a bias of distance under softmax, but not "
                "before it",
                off,
            )
        return f"{off:.1g} along diagonals of {seq}, beside a size of {scale:.3g}"
    return fault(
        "depends-on-absolute-positions",
        "wrong",
        f"at one distance the bias of head {head} differs by up to {off:.3g} between queries (its "
        f"size is up to {scale:.3g})",
        off,
        _show(inquiry, f"{seq}, {seq}"),
    )


@question(essential=True, after=("encodes-nothing", *NO_STATE))
def same_at_another_length(inquiry: BiasInquiry) -> Answer:
    """Does a pair of tokens receive the same in a short row and in a long one?"""
    view = inquiry.view
    if view.fixed:
        raise NotAskedError(f"it takes {view.fixed} tokens alone")
    short = inquiry.view.seen(SEQ, SEQ)
    visible = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    off = (inquiry.seen[:, :SEQ, :SEQ] - short)[:, visible].nan_to_num(0.0).abs().max().item()
    if off <= ROUNDING:
        return f"{off:.1g} apart between {SEQ} and {2 * SEQ} tokens"
    return fault(
        "depends-on-length",
        "wrong",
        f"in rows of {SEQ} and {2 * SEQ} tokens the same pairs receive biases up to {off:.3g} "
        "apart",
        off,
        _show(inquiry, f"{SEQ}, {SEQ}"),
    )


@question(
    essential=True,
    after=("depends-on-length", "depends-on-absolute-positions", "buckets-turned", *NO_STATE),
)
def decodes_as_it_prefills(inquiry: BiasInquiry) -> Answer:
    """Is the row of one query behind a cache the last row of the square?"""
    view = inquiry.view
    if not view.rows:
        raise NotAskedError("it gives square matrices only")
    worst = 0.0
    for q_len in (1, 3):
        whole = view.seen(SEQ, SEQ)[:, -q_len:]
        part = view.seen(q_len, SEQ)
        visible = torch.ones(q_len, SEQ, dtype=torch.bool).tril(SEQ - q_len)
        off = (whole - part)[:, visible].nan_to_num(0.0).abs().max().item()
        worst = max(worst, off)
    if worst < ROUNDING:
        return f"{worst:.1g} apart for the last 1 and 3 of {SEQ} queries"
    return fault(
        "bias-without-cache-offset",
        "wrong",
        f"for one query and {SEQ} keys the bias is up to {worst:.3g} away from the last row of "
        "the square: the query is taken to stand elsewhere",
        worst,
        _show(inquiry, f"1, {SEQ}"),
    )


@question(
    essential=True, after=("depends-on-length", "depends-on-absolute-positions", "encodes-nothing")
)
def favors_near_keys(inquiry: BiasInquiry) -> Answer:
    """Does a linear bias fall with distance, and leave the future to the mask?"""
    found = inquiry.linear
    if found is None:
        raise NotAskedError("it does not fall linearly with distance")
    if bool((found.fall < 0).any()):
        grows = int((found.fall < 0).sum())
        return fault(
            "wrong-sign",
            "wrong",
            f"in {grows} of {len(found.fall)} heads the bias grows with distance, by up to "
            f"{-found.fall.min().item():.3g} a token: far keys win",
            -found.fall.min().item(),
            _show(inquiry, "8, 8"),
        )
    return f"falls by {found.fall.min().item():.3g} to {found.fall.max().item():.3g} a token"


@question(
    essential=True,
    after=("depends-on-length", "depends-on-absolute-positions", "encodes-nothing", "wrong-sign"),
)
def has_known_slopes(inquiry: BiasInquiry) -> Answer:
    """Has a linear bias the slopes of ALiBi's authors?"""
    found = inquiry.linear
    if found is None:
        raise NotAskedError("it does not fall linearly with distance (no ALiBi)")
    if inquiry.learns:
        raise NotAskedError("its slopes are learned")
    heads = len(found.fall)
    show = (
        "from posenc.numerics import slopes\n"
        f"slopes.alibi({heads})\n"
        "# against the fall of bias[:, -1] by key"
    )
    if found.rule == "alibi":
        return f"slopes of {heads} heads within {100 * found.off:.1g} % of the authors'"
    if found.rule == "geometric":
        wanted = torch.tensor(slopes.alibi(heads), dtype=torch.float64)
        off = (found.fall / wanted - 1).abs().max().item()
        return fault(
            "slopes-of-other-head-counts",
            "wrong",
            f"{heads} is no power of two; 2^(−8h/{heads}) differs from the authors' slopes by up "
            f"to {100 * off:.0f} %",
            off,
            show,
        )
    if found.rule:
        return fault(
            "slopes-in-another-order",
            "wrong",
            f"the {heads} slopes are the authors' in another order",
            found.off,
            show,
        )
    return fault(
        "wrong-slopes",
        "wrong",
        f"slopes of {heads} heads differ from the authors' by up to {100 * found.off:.3g} %",
        found.off,
        show,
    )


@question(
    essential=True,
    after=(
        *("depends-on-length", "depends-on-absolute-positions", "encodes-nothing", "wrong-sign"),
        "bias-without-cache-offset",
    ),
)
def stays_on_its_line(inquiry: BiasInquiry) -> Answer:
    """Does a bias with known slopes fall as steeply far away as it does near?"""
    found = inquiry.linear
    if found is None or not found.rule:
        raise NotAskedError("it does not fall linearly with distance, or by slopes of its own")
    if inquiry.view.slopes_only:
        raise NotAskedError("it gives slopes, and no bias")
    if inquiry.view.fixed:
        raise NotAskedError(f"it takes {inquiry.view.fixed} tokens alone")
    apart = inquiry.parting
    if apart is None:
        return f"slope × distance in a row of {inquiry.longest_row(torch.float32).shape[1]:,} keys"
    return fault(
        "far-keys-otherwise",
        "wrong",
        f"near keys receive slope × distance, but at distance {apart.distance:,} head {apart.head} "
        f"adds {apart.given:.4g} where that is {apart.wanted:.4g}",
        abs(apart.given - apart.wanted),
        _show(inquiry, f"{1 if inquiry.view.rows else apart.length}, {apart.length}"),
    )


@question(essential=True, after=("depends-on-length", "depends-on-absolute-positions"))
def has_known_buckets(inquiry: BiasInquiry) -> Answer:
    """Does a bias that is looked up read the row that T5 reads at each distance?"""
    found = inquiry.buckets
    if found is None:
        raise NotAskedError("it reads no table [buckets, heads] by distance")
    show = (
        "from posenc.numerics.buckets import t5_buckets\n"
        "# t5_buckets(q − k, buckets, max_distance, bidirectional)"
    )
    if found.kind in ("t5", "clipped"):
        return f"{found.said}, at every distance to {(len(found.index) - 1) // 2}"
    if found.kind == "turned":
        return fault(
            "buckets-turned",
            "wrong",
            "distances are taken with the other sign: keys before a query read the rows of keys "
            "after it",
            1.0,
            show,
        )
    if found.off > len(found.index) // 2 and not _is_like_t5(found):
        raise NotAskedError("it has buckets of another kind than T5's")
    return fault(
        "buckets-off",
        "wrong",
        f"{found.off} of {len(found.index)} distances read another row than T5's, the nearest of "
        f"them {found.first_off} (buckets {found.rows}, maximal distance {found.max_distance})",
        found.off,
        show,
    )


def _is_like_t5(found: biases.Buckets) -> bool:
    """Whether far distances share rows, as those of logarithmic buckets do."""
    n = (len(found.index) + 1) // 2
    return len(found.index[: n - 150].unique()) <= 2 and n > 200


@question(after=("far-keys-otherwise",))
def keeps_distances_apart(inquiry: BiasInquiry) -> Answer:
    """Is a bias of 16 bits as good as one computed from the distance and rounded once?"""
    view, found = inquiry.view, inquiry.linear
    if found is None or found.rule != "alibi" or view.slopes_only:
        raise NotAskedError("it is no ALiBi")
    made = inquiry.longest_row(torch.bfloat16)
    if made.dtype == torch.float32 and not _held(made):
        return (
            f"float32, {len(made[0].unique()):,} different values of {made.shape[1]:,} in the "
            "steepest head"
        )
    rule = torch.tensor(slopes.alibi(len(made)), dtype=torch.float64)
    distance = torch.arange(63, -1, -1, dtype=torch.float64)
    wanted = -rule[:, None] * distance
    near = made[:, -64:].double()
    off = (near - near[:, -1:] - wanted).abs().max().item()
    kind = str(made.dtype).removeprefix("torch.")
    if off < 0.05 and not (_held(made) and made.dtype == torch.float32):
        return f"{kind}, up to {off:.1g} off for the nearest 64 keys"
    steepest = made[int(rule.argmax())]
    return fault(
        "bias-in-16-bits",
        "lossy",
        f"at length {made.shape[1]:,} ({kind}) the steepest head has {len(steepest.unique())} "
        "different values, and the nearest 64 keys, which matter most, are off by up to "
        f"{off:.3g}: slope × absolute position rounds where the numbers are largest",
        off,
        _show(inquiry, f"1, {made.shape[1]}"),
    )


def _held(made: Tensor) -> bool:
    """Whether float32 numbers are all numbers of bfloat16, and many."""
    if made.shape[1] < 512 or made.dtype != torch.float32:
        return False
    return (
        bool((made.bfloat16().float() == made).all()) and len(made[0].unique()) < made.shape[1] // 2
    )


@question()
def leaves_its_input_alone(inquiry: BiasInquiry) -> Answer:
    """Is what it was given after the call what it was before?"""
    seq = inquiry.view.fixed or SEQ
    return untouched(lambda: inquiry.view.bias(seq, seq))


@question()
def keeps_no_state(inquiry: BiasInquiry) -> Answer:
    """Does a call leave no trace in the next?"""
    view = inquiry.view
    seq = view.fixed or SEQ
    clean = view.bias(seq, seq)
    for name, dtype, before in (
        ("first-dtype-cached", torch.bfloat16, seq),
        ("history-changes-result", torch.float32, 64),
        ("state-between-calls", torch.float32, 5),
    ):
        used = view.subject.fresh()
        try:
            view.bias(before, before, dtype, by=used)
            again = view.bias(seq, seq, by=used)
        except NotAskedError as reason:
            if before != seq and view.fixed:
                continue
            return fault(
                name,
                "wrong",
                f"after a call with {before} tokens, {seq} tokens are refused: {reason}",
                1.0,
                _show(inquiry, f"{seq}, {seq}"),
            )
        off = (again.double() - clean.double()).nan_to_num(0.0).abs().max().item()
        if off > 0 or again.dtype != clean.dtype:
            return fault(
                name,
                "wrong",
                f"after a call with {before} tokens in {str(dtype).removeprefix('torch.')}, {seq} "
                f"tokens receive a bias up to {off:.3g} away from a fresh one",
                off or 1.0,
                _show(inquiry, f"{seq}, {seq}"),
            )
    return "bit for bit the same after 3 other calls"


@question()
def gradients_flow(inquiry: BiasInquiry) -> Answer:
    """Does every parameter get a gradient?"""
    thing, seq = inquiry.view.subject.fresh(), inquiry.view.fixed or SEQ
    if not inquiry.learns:
        raise NotAskedError("it has no parameters")
    call = lambda: inquiry.view.bias(seq, seq, by=thing)  # noqa: E731
    if "." not in inquiry.view.text.split("(")[0]:
        return gradients(thing, call, None)
    # of a method of attention, whose other parameters belong to other methods
    for parameter in thing.parameters():
        parameter.requires_grad_(parameter.ndim == 2 and inquiry.view.heads in parameter.shape)
    return gradients(thing, call, None)


QUESTIONS: tuple[Question, ...] = (
    tells_distances_apart,
    leaves_its_input_alone,
    keeps_no_state,
    same_at_another_length,
    knows_distance_alone,
    favors_near_keys,
    has_known_slopes,
    has_known_buckets,
    decodes_as_it_prefills,
    stays_on_its_line,
    keeps_distances_apart,
    gradients_flow,
)
