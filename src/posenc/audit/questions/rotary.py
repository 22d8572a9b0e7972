"""Questions to what rotates queries and keys."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import guarded, varies
from posenc.audit.adapters.rotary import HEADS, RotaryView
from posenc.audit.identity import rotations
from posenc.audit.questions import rows
from posenc.audit.questions.added import gradients, state, untouched
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
from posenc.encodings.queries_keys import Rotary
from posenc.frequencies import Schedule

ROUNDING = 1e-5


@dataclass
class RotaryInquiry:
    """A subject that rotates, with what several questions need of it."""

    view: RotaryView
    length: int
    expected: Rotary | None = None
    errors: dict[int, float] = field(default_factory=dict)

    @cached_property
    def matrices(self) -> Tensor:
        """R(0) … R(n − 1) of queries, float64."""
        return self.view.matrices(rotations.NEAR if self.view.dim <= 128 else 16)

    @cached_property
    def keys(self) -> Tensor:
        """R(0) … R(n − 1) of keys, float64."""
        return self.view.matrices(8, side="k")

    @cached_property
    def shape(self) -> rotations.Structure:
        """Its pairs and frequencies; of keys, where queries stay as they are."""
        found = rotations.structure(self.matrices)
        if not found.firsts and self.view.sees_keys:
            return rotations.structure(self.view.matrices(rotations.NEAR, side="k"))
        return found

    @cached_property
    def rotation(self) -> rotations.Rotation | None:
        """The schedule that it follows, if it is one that is known."""
        return rotations.identify(self.shape, self.schedule, coarse=self.coarse)

    @cached_property
    def side(self) -> str:
        """The side that turns: queries, unless only keys do."""
        return "q" if rotations.structure(self.matrices).firsts or not self.view.sees_keys else "k"

    @cached_property
    def coarse(self) -> bool:
        """Whether its cosines are numbers of 16 bits."""
        moving = self.matrices[1:][:, self.shape.firsts, self.shape.firsts]
        return rows.is_held_in(moving) is not None

    @property
    def schedule(self) -> Schedule | None:
        """The schedule that the configuration beside it means."""
        return self.expected.frequencies if self.expected is not None else None

    @property
    def rows_show(self) -> str:
        """Code that calls it at some positions."""
        return f"import torch\nx = torch.randn(1, 4, 64, {self.view.dim})  # {layouts.SAID['bhsd']}"

    def table_at(self, line: list[int]) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the pairs at positions, as content shows them."""
        made = self.view.at(line, self.shape.probe(), self.side)
        return self.shape.table(made)

    @cached_property
    def line(self) -> list[int]:
        """Positions at which rows are held against each other and against exact ones."""
        n, built = self.length, self.view.built_for or self.length
        if not self.view.moves and built * self.view.dim * HEADS > 2**25:
            built = 512
        some = {*range(64), *range(254, 260), *range(1022, 1027), *range(2046, 2052)}
        some |= {p + k for p in (4095, 8191, n - 3) for k in range(3) if p + k < n}
        some = {p for p in some if p < n}
        for edge in {built, 2 * built}:
            some |= {edge + k for k in (-2, -1, 0, 1, 2)}
        return sorted(p for p in some if p >= 0)

    @cached_property
    def far(self) -> tuple[list[int], Tensor, str]:
        """As many of these positions as it takes, its rows there, and where it refuses."""
        line = list(self.line)
        refused = ""
        while line:
            try:
                return line, self._rows(line), refused
            except NotAskedError as reason:
                refused = str(reason)
                edge = len(line) * 3 // 4 if len(line) > 70 else len(line) // 2
                # positions beyond its table are refused together: step back over each edge
                line = (
                    [p for p in line if p < line[-1] - 2]
                    if line[-1] - line[0] > 70
                    else line[:edge]
                )
        raise NotAskedError(f"it takes no positions: {refused}")

    def _rows(self, line: list[int]) -> Tensor:
        """Cosines and sines; positions beyond what it is built for in a call of their own."""
        built = self.view.built_for or self.length
        parts = [p for p in line if p < built], [p for p in line if p >= built]
        made = [torch.cat(self.table_at(part), -1) for part in parts if part]
        return torch.cat(made)

    @property
    def identity(self) -> str:
        """One line."""
        found = self.rotation
        if found is None:
            return ""
        line = [p for p in self.far[0] if p < self.length] or self.far[0]
        off = self._off(found, line)
        ours = f"posenc.Rotary({found.schedule!r})"
        return f"{found.said}: equal to {ours} within {off:.1g} to position {line[-1]:,}"

    def _off(self, found: rotations.Rotation, line: list[int]) -> float:
        made = self.far[1][: len(line)] / self.shape.size
        cos, sin = found.exact(torch.tensor(line))
        sense = self.shape.frequencies.sign()
        return (made - torch.cat((cos, sin * sense), -1)).abs().max().item()


# Order.


@question(essential=True)
def encodes_the_sequence(inquiry: RotaryInquiry) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    view = inquiry.view
    batch = 1 if view.layout in layouts.ONE_ROW else 3
    ones = torch.ones(batch, HEADS, 6, view.dim)
    queries, keys = view.both(ones, ones[:, : view.kv_heads])
    along = max(varies(m, 2) for m in (queries, keys) if m is not None)
    for axis, name, words in (
        (0, "batch-axis-encoded", "rows of a batch"),
        (1, "head-axis-encoded", "heads"),
    ):
        across = max(varies(m, axis) for m in (queries, keys) if m is not None)
        if across > 1e-6:
            return fault(
                name,
                "wrong",
                f"equal {words} come out up to {across:.3g} apart, positions of a row {along:.3g}",
                across,
                "import torch\n"
                f"x = torch.ones(3, 4, 6, {view.dim})  # {layouts.SAID[view.layout]}\n"
                f"made = subject(x)  # compare along axis {axis}",
            )
    if along <= 1e-9:
        return fault(
            "encodes-nothing",
            "wrong",
            "all positions of a row are turned alike",
            along,
            "import torch\n"
            f"x = torch.ones(1, 4, 6, {view.dim})\n"
            "subject(x)  # every token the same",
            1.0,
        )
    return f"neighbors up to {along:.3g} apart, equal rows and heads 0"


@question(essential=True, after=NO_LENGTH)
def is_a_rotation(inquiry: RotaryInquiry) -> Answer:
    """Is each pair of channels turned by one angle, its length kept?"""
    shape = inquiry.shape
    if not shape.firsts:
        return fault(
            "encodes-nothing", "wrong", "no channel turns with position", 0.0, expected=1.0
        )
    if shape.odd.startswith("both sines"):
        return fault(
            "sign-missing",
            "wrong",
            f"{shape.odd}: (a, b) → (a cos + b sin, b cos + a sin) is a reflection, and q·k "
            f"depends on where both stand (by {shape.odd_number:.3g})",
            shape.odd_number,
            _relative_code(inquiry),
        )
    if shape.odd == rotations.LENGTHS_CHANGE and _is_relative_all_the_same(inquiry):
        return f"{shape.odd}, and those of keys inversely (xPos): products know distances alone"
    if shape.odd:
        name = "pairing-mixed" if _is_mixed(inquiry) else "not-relative"
        return fault(
            name,
            "wrong",
            f"{shape.odd} (by {shape.odd_number:.3g}): products of queries and keys depend on "
            "where both stand",
            shape.odd_number,
            _relative_code(inquiry),
        )
    return f"{len(shape.firsts)} pairs, {shape.pairing} pairing"


def _is_relative_all_the_same(inquiry: RotaryInquiry) -> bool:
    """Whether products of queries and keys still depend on distances alone."""
    if not inquiry.view.sees_keys:
        return False
    queries, keys = inquiry.matrices, inquiry.keys
    return bool((queries[1].T @ keys[2] - queries[4].T @ keys[5]).abs().max() < 1e-4)


def _is_mixed(inquiry: RotaryInquiry) -> bool:
    """Whether cosines repeat in one way, and their partners stand in the other."""
    diagonal = inquiry.matrices[1:8].diagonal(dim1=1, dim2=2)
    by_neighbors = (diagonal[:, 0::2] - diagonal[:, 1::2]).abs().max() < 1e-5
    half = diagonal.shape[1] // 2
    by_halves = (diagonal[:, :half] - diagonal[:, half:]).abs().max() < 1e-5
    steps = {b - a for a, b in zip(inquiry.shape.firsts, inquiry.shape.seconds, strict=True)}
    return bool((by_neighbors and steps != {1}) or (by_halves and steps == {1}))


def _relative_code(inquiry: RotaryInquiry) -> str:
    return (
        "import torch\n"
        f"q = k = torch.ones(1, 1, 32, {inquiry.view.dim})\n"
        "# scores of equal distance differ: (rotated q)[..., 3, :] · (rotated k)[..., 8, :] "
        "against 13 and 18"
    )


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "sign-missing", "pairing-mixed", "not-relative")
)
def is_relative(inquiry: RotaryInquiry) -> Answer:
    """Do products of a query and a key depend on their distance alone?"""
    view, queries = inquiry.view, inquiry.matrices
    keys = inquiry.keys if view.sees_keys else queries
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    queries = queries[: len(keys)]
    off = (queries[1].T @ keys[2] - queries[4].T @ keys[5]).abs().max().item()
    size = queries.abs().max().item() ** 2
    if off < (2e-2 if inquiry.coarse else 1e-4) * max(size, 1.0):
        how = "" if view.sees_keys else "; keys go through the same call"
        return f"{off:.1g} apart between positions (1, 2) and (4, 5){how}"
    sides = _sides(inquiry, queries, keys)
    if sides is not None:
        return sides
    if inquiry.shape.odd:
        raise NotAskedError(f"it is no rotation: {inquiry.shape.odd}")
    return fault(
        "not-relative",
        "wrong",
        f"the product of a query at 1 and a key at 2 is up to {off:.3g} away from that at 4 and 5",
        off,
        _relative_code(inquiry),
    )


def _sides(inquiry: RotaryInquiry, queries: Tensor, keys: Tensor) -> Answer | None:
    """What differs between queries and keys."""
    if not inquiry.view.sees_keys:
        return None
    still = [
        (m - torch.eye(m.shape[-1], dtype=m.dtype)).abs().max().item() < 1e-6
        for m in (queries, keys)
    ]
    moved = (queries[5] - queries[1]).abs().max().item()
    show = (
        "import torch\n"
        f"q = k = torch.ones(1, 4, 8, {inquiry.view.dim})\n"
        "subject(q, k)  # compare both"
    )
    if still[1] and not still[0]:
        return fault(
            "only-queries-rotated",
            "wrong",
            f"keys come out as they went in, queries turn by up to {moved:.3g}",
            moved,
            show,
        )
    if still[0] and not still[1]:
        return fault(
            "only-keys-rotated",
            "wrong",
            "queries come out as they went in, keys turn",
            (keys[5] - keys[1]).abs().max().item(),
            show,
        )
    if (queries - keys.mT).abs().max() < 1e-4:
        return fault(
            "keys-turned-backwards",
            "wrong",
            "keys are turned by −p where queries are turned by +p: scores depend on the sum of "
            "positions",
            1.0,
            show,
        )
    off = (queries - keys).abs().max().item()
    if off > 1e-4:
        return fault(
            "keys-turned-otherwise",
            "wrong",
            f"queries and keys of one token are turned by matrices up to {off:.3g} apart",
            off,
            show,
        )
    return None


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(inquiry: RotaryInquiry) -> Answer:
    """Is every position turned in its own way, also beyond the length it is built for?"""
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    line, table, refused = inquiry.far
    view = inquiry.view
    found = rows.beyond(
        table,
        torch.tensor(line),
        "the rotation",
        lambda p, q: (
            "import torch\n"
            f"x = torch.ones(1, 4, {q + 1}, {view.dim})\n"
            f"# the tokens at {p} and {q} of the rotated x are equal"
        ),
    )
    if found is not None:
        return found
    said = f"; beyond {line[-1]:,} it refuses ({refused[:80]})" if refused else ""
    return f"{len(line)} positions to {line[-1]:,}, all turned differently{said}"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(inquiry: RotaryInquiry) -> Answer:
    """Is a position turned the same in a short row and in a long one?"""
    view = inquiry.view
    x = torch.randn(1, HEADS, 24, view.dim, generator=torch.Generator().manual_seed(2))
    long, short = (
        view.both(x, x[:, : view.kv_heads]),
        view.both(x[:, :, :9], x[:, : view.kv_heads, :9]),
    )
    far = max(
        (a[:, :, :9] - b).abs().max().item()
        for a, b in zip(long, short, strict=True)
        if a is not None and b is not None
    )
    if far < ROUNDING:
        stretched = _stretched(inquiry)
        return stretched or f"{far:.1g} apart between 9 and 24 tokens"
    if long[1] is not None and short[1] is not None:
        scores = long[0][:, : view.kv_heads] @ long[1].mT
        fewer = short[0][:, : view.kv_heads] @ short[1].mT
        if (scores[:, :, :9, :9] - fewer).abs().max().item() < 10 * ROUNDING:
            return f"tokens {far:.3g} apart between 9 and 24 tokens, but their scores are not"
    return fault(
        "depends-on-length",
        "wrong",
        f"in rows of 9 and of 24 tokens the same tokens come out up to {far:.3g} apart",
        far,
        "import torch\n"
        f"x = torch.randn(1, 4, 24, {view.dim})\n"
        "# subject(x[:, :, :9]) against subject(x)[:, :, :9]",
    )


def _stretched(inquiry: RotaryInquiry) -> Fault | None:
    """Tokens that turn otherwise beside one beyond the length that it is built for.

    So do dynamic scalings: keys that were cached before no longer fit the queries after.
    """
    view, built = inquiry.view, inquiry.view.built_for
    if not built or view.moves not in ("rows", "line") or not inquiry.shape.firsts:
        return None
    near, far = [1, 5, 40], 2 * built
    try:
        alone = view.at(near, inquiry.shape.probe(), inquiry.side)
        beside = view.at([*near, far], inquiry.shape.probe(), inquiry.side)[:-1]
    except NotAskedError:
        return None
    off = (alone - beside).abs().max().item()
    if off < ROUNDING:
        return None
    return fault(
        "depends-on-length",
        "wrong",
        f"once a token at {far:,} is in the call, tokens at 1, 5 and 40 are turned up to "
        f"{off:.3g} otherwise: frequencies follow the longest row, and keys that were cached "
        "before no longer fit",
        off,
        "import torch\n"
        f"near, far = torch.arange(8), torch.tensor([{far}])\n"
        f"# {view.text} at near against near and far together",
    )


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(inquiry: RotaryInquiry) -> Answer:
    """Is one token behind a cache turned as in the whole row?"""
    view = inquiry.view
    if hasattr(view.subject.fresh(), "rotate_queries_with_cached_keys"):
        return _joins_a_cache(view)
    if not view.moves:
        raise NotAskedError("positions cannot be said")
    x = torch.randn(1, HEADS, 9, view.dim, generator=torch.Generator().manual_seed(3))
    sides = ("q", "k") if view.sees_keys else ("q",)
    worst = 0.0
    for side in sides:
        whole = view.turned(x, side=side)

        def steps(shift: int, side: str = side) -> Tensor:
            made = [view.turned(x[:, :, p : p + 1], p + shift, side=side) for p in range(2, 9)]
            return torch.cat(made, 2)

        far = (steps(0) - whole[:, :, 2:]).abs().max().item()
        worst = max(worst, far)
        if far < ROUNDING:
            continue
        what = "queries" if side == "q" else "keys"
        show = (
            "import torch\n"
            f"x = torch.randn(1, 4, 9, {view.dim})\n"
            f"# {view.text} of x[:, :, 5:6] at 5 against subject(x)[:, :, 5:6]"
        )
        for shift in (1, -1):
            if (steps(shift) - whole[:, :, 2:]).abs().max() < ROUNDING:
                return fault(
                    "off-by-one-after-cache",
                    "wrong",
                    f"behind a cache {what} of token p are turned as token p "
                    f"{'−' if shift == 1 else '+'} 1 is in the whole row ({far:.3g} off)",
                    far,
                    show,
                )
        return fault(
            "decoding-differs-from-prefill",
            "wrong",
            f"{what} turned one by one are up to {far:.3g} away from the same turned together",
            far,
            show,
        )
    return f"{worst:.1g} apart at positions 2 to 8"


def _joins_a_cache(view: RotaryView) -> Answer:
    """Scores of the last query, turned together with cached keys, as in rotary-embedding-torch."""
    x = torch.randn(1, HEADS, 9, view.dim, generator=torch.Generator().manual_seed(3))
    queries, keys = view.both(x, x[:, : view.kv_heads])
    if keys is None:
        raise NotAskedError("keys were not seen")
    thing = view.subject.fresh()
    last, cached = guarded(lambda: thing.rotate_queries_with_cached_keys(x[:, :, -1:], x))
    scores, joined = (
        (q[:, : k.shape[1]] @ k.mT)[:, :, -1]
        for q, k in ((queries, keys), (last, cached[:, : keys.shape[1]]))
    )
    far = (scores - joined).abs().max().item()
    if far < ROUNDING * scores.abs().max().item():
        return f"scores of the last query {far:.1g} apart"
    return fault(
        "decoding-differs-from-prefill",
        "wrong",
        f"with cached keys the last query's scores are up to {far:.3g} away from those of the "
        "whole row",
        far,
        "import torch\n"
        f"x = torch.randn(1, 4, 9, {view.dim})\n"
        "# subject.rotate_queries_with_cached_keys(x[:, :, -1:], x) against "
        "rotate_queries_and_keys(x, x)",
    )


@question(after=(*NO_LENGTH, *NO_STATE))
def rows_have_their_own_positions(inquiry: RotaryInquiry) -> Answer:
    """In a batch with padding on the left, is each row turned by its own positions?"""
    view = inquiry.view
    if view.moves != "rows" or view.layout in layouts.ONE_ROW:
        raise NotAskedError("positions cannot be said for each row")
    x = torch.randn(2, HEADS, 6, view.dim, generator=torch.Generator().manual_seed(4))
    at = torch.stack((torch.arange(6), torch.arange(6) + 5))
    both = view.both(x, x[:, : view.kv_heads], at)[0]
    apart = torch.cat(
        [view.both(x[i : i + 1], x[i : i + 1, : view.kv_heads], at[i : i + 1])[0] for i in (0, 1)]
    )
    far = (both - apart).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart from the rows alone"
    return fault(
        "padding-shifts-positions",
        "wrong",
        f"with rows that begin at 0 and at 5, tokens come out up to {far:.3g} away from the same "
        "rows alone",
        far,
        "import torch\n"
        f"x = torch.randn(2, 4, 6, {view.dim})\n"
        "at = torch.stack((torch.arange(6), torch.arange(6) + 5))  # positions of both rows",
    )


# What a call leaves behind.


@question()
def leaves_its_input_alone(inquiry: RotaryInquiry) -> Answer:
    """Are queries, keys and positions after the call what they were before?"""
    view = inquiry.view
    x = torch.randn(1, HEADS, 6, view.dim)
    return untouched(lambda: view.both(x, x[:, : view.kv_heads].clone()))


@question()
def keeps_no_state(inquiry: RotaryInquiry) -> Answer:
    """Does a call leave no trace in the next: not its length, nor its dtype?"""
    view = inquiry.view
    content = torch.randn(1, 1, 1, view.dim, generator=torch.Generator().manual_seed(5))

    def call(seq: int, dtype: torch.dtype, by: Any) -> Tensor:
        return view.turned(content.expand(1, HEADS, seq, -1).to(dtype).contiguous(), by=by)[0, 0]

    far = min(max(2 * (view.built_for or 0), 1024), 2**23 // (view.dim * HEADS))
    return state(call, view.subject.fresh, 23, False, far, view.dim)


@question(after=(*NO_LENGTH, *NO_STATE, "positions-in-16-bits", "first-dtype-cached"))
def survives_a_cast(inquiry: RotaryInquiry) -> Answer:
    """After ``.bfloat16()``, are bfloat16 queries turned as well as before?"""
    view, module = inquiry.view, inquiry.view.subject.fresh()
    if not isinstance(module, nn.Module):
        raise NotAskedError("it is no module")
    if any(True for _ in module.parameters()):
        raise NotAskedError("it has parameters, which a cast must round")
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    at = [p for p in inquiry.far[0] if p < inquiry.length]
    fresh, probe = view.subject.fresh(), inquiry.shape.probe()
    exact = view.at(at, probe, by=fresh)
    made = view.at(at, probe.bfloat16(), by=module.bfloat16())
    far = (made - exact).abs()
    off = far.max().item()
    if off < 5 * 2**-8 * max(1.0, exact.abs().max().item()):
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    row = int(far.amax(1).argmax())
    return fault(
        "cast-breaks-it",
        "lossy",
        f"after .bfloat16() a token at {at[row]:,} is turned up to {off:.3g} off; one rounding "
        "costs 0.004: what it keeps is rounded with the weights",
        off,
        "import copy, torch\n"
        "half = copy.deepcopy(subject).bfloat16()\n"
        f"# compare half and subject at position {at[row]}",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "positions-in-16-bits"))
def keeps_positions_in_16_bits(inquiry: RotaryInquiry) -> Answer:
    """Are bfloat16 queries turned as float32 ones are, up to their own rounding?"""
    view = inquiry.view
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    at = [p for p in inquiry.far[0] if p < inquiry.length]
    probe = inquiry.shape.probe()
    narrow, wide = view.at(at, probe.bfloat16()), view.at(at, probe)
    far = (narrow - wide).abs()
    off = far.max().item()
    if off < 5 * 2**-8 * max(1.0, wide.abs().max().item()):
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    row = int(far.amax(1).argmax())
    return fault(
        "positions-in-16-bits",
        "lossy",
        f"bfloat16 queries at {at[row]:,} are turned up to {off:.3g} away from float32 ones: "
        "positions or angles are held in bfloat16, where 256 and 257 are one number",
        off,
        "import torch\n"
        f"x = torch.ones(1, 4, 300, {view.dim})\n"
        "# subject(x) against subject(x.bfloat16())",
    )


@question()
def gradients_flow(inquiry: RotaryInquiry) -> Answer:
    """Does every parameter get a gradient, and the input too?"""
    view, thing = inquiry.view, inquiry.view.subject.fresh()
    x = torch.randn(1, HEADS, 6, view.dim, requires_grad=True)
    at = torch.arange(6)[None]
    return gradients(thing, lambda: view.run(thing, x, x[:, : view.kv_heads], at)[0], x)


# What it is.


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(inquiry: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    shape, found = inquiry.shape, inquiry.rotation
    show = (
        "import torch\n"
        f"x = torch.ones(1, 4, 2, {inquiry.view.dim})\n"
        "# the angle of each pair at position 1"
    )
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation" + f": {shape.odd}" * bool(shape.odd))
    if found is None:
        thing = inquiry.view.subject.fresh()
        if isinstance(thing, nn.Module) and any(True for _ in thing.parameters()):
            raise NotAskedError("its frequencies are learned")
        first = ", ".join(f"{w:.4g}" for w in shape.frequencies[:3].tolist())
        return fault(
            "unknown-frequencies",
            "wrong",
            f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no schedule that "
            "is known here",
            shape.frequencies[0].item(),
            show,
        )
    found_faults = []
    if found.missing:
        found_faults.append(
            fault(
                "pair-never-turns",
                "wrong",
                f"pair(s) {', '.join(map(str, found.missing))} of "
                f"{len(found.missing) + len(shape.firsts)} never turn",
                len(found.missing),
                show,
            )
        )
    if found.slip:
        found_faults.append(
            fault(
                "wrong-exponent",
                "wrong",
                f"frequencies fall as {found.named}: the exponent has {found.slip}",
                1.0,
                show,
            )
        )
    if abs(shape.size - found.factor) > 1e-3:
        found_faults.append(
            fault(
                "table-scaled",
                "wrong",
                f"cosines and sines are multiplied with {shape.size:.4g}, where {found.named} has "
                f"{found.factor:.4g}",
                shape.size,
                show,
                found.factor,
            )
        )
    if bool((shape.frequencies < 0).all()):
        found_faults.append(
            fault(
                "turned-backwards",
                "note",
                "queries and keys are both turned by −p: scores are those of the mirrored "
                "distance, as no checkpoint has them",
                -1.0,
                expected=1.0,
            )
        )
    if found.unusual and not found.slip:
        found_faults.append(
            fault("unusual-base", "note", f"{found.named} is that of no known model", 1.0)
        )
    if found_faults:
        return found_faults
    return f"within 2e-06 a position of {found.named}"


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(inquiry: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours, shape = inquiry.expected, inquiry.shape
    if ours is None:
        raise NotAskedError("there is no configuration beside it")
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation")
    wanted = rotations._that_turn(ours.frequencies)
    show = "from posenc.interop.huggingface import rotary_from_config\nrotary_from_config(config)"
    unseen = inquiry.view.applied.startswith("it gives") or "several" in inquiry.view.applied
    if shape.pairing != ours.pairing and not unseen:
        return fault(
            "pairing-of-the-other-convention",
            "wrong",
            f"it pairs channels by {shape.pairing}, the configuration's model by {ours.pairing}",
            1.0,
            show,
        )
    theirs, our = shape.frequencies.abs(), rotations.radians(wanted)
    if len(theirs) != len(our) or not rotations._fits(wanted, theirs):
        off = (theirs[: len(our)] - our[: len(theirs)]).abs().max().item()
        now = inquiry.rotation.named if inquiry.rotation is not None else "other frequencies"
        return fault(
            "unlike-its-configuration",
            "wrong",
            f"it has {now} over {2 * len(theirs)} channels, the configuration means "
            f"{rotations.describe(ours.frequencies)} over {2 * len(our)} (frequencies up to "
            f"{off:.3g} apart)",
            off,
            show,
        )
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > 1e-3:
        return fault(
            "unlike-its-configuration",
            "wrong",
            f"cosines are multiplied with {shape.size:.4g}, the configuration means {factor:.4g}",
            shape.size,
            show,
        )
    return f"{rotations.describe(ours.frequencies)}, {ours.pairing} pairing"


@question(after=NO_PLACE)
def is_precise(inquiry: RotaryInquiry) -> Answer:
    """Up to the length that counts, are scores those of exact arithmetic?"""
    found = inquiry.rotation
    if found is None:
        raise NotAskedError("what it should be is not known, so nothing can be held against it")
    line = [p for p in inquiry.far[0] if p < inquiry.length]
    table = inquiry.far[1][: len(line)] / inquiry.shape.size
    cos, sin = found.exact(torch.tensor(line))
    exact = torch.cat((cos, sin * inquiry.shape.frequencies.sign()), -1)
    off = (table - exact).abs().amax(1)
    marks = [p for p in (10, 63, 257, 1024, 2049, 8192) if p in line] + [line[-1]]
    for mark in marks:
        inquiry.errors[mark] = off[: line.index(mark) + 1].max().item()
    moved = _scores_moved(table - exact)
    worst, score = off.max().item(), moved.max().item()
    show = (
        "import torch\n"
        f"x = torch.ones(1, 4, {line[-1] + 1}, {inquiry.view.dim})\n"
        f"# the last token against posenc.Rotary({found.schedule!r})"
    )
    if found.rounded:
        return fault(
            "frequencies-in-16-bits",
            "lossy",
            f"frequencies are those of {found.named} rounded to {found.rounded}: at position "
            f"{line[-1]:,} cosines are {worst:.3g} off and a score moves by {score:.3g}",
            worst,
            show,
        )
    held = rows.is_held_in(inquiry.far[1])
    if held:
        return fault(
            "table-in-16-bits",
            "lossy",
            f"cosines and sines of float32 content are numbers of {held}: up to {worst:.3g} off, "
            f"a score moves by {score:.3g}",
            worst,
            show,
        )
    if score > LOSSY:
        first = line[int((moved > LOSSY).nonzero()[0])]
        return fault(
            "precision-lost",
            "lossy",
            f"from position {first:,} on scores move by more than {LOSSY} (up to {score:.3g} at "
            f"{line[-1]:,}); cosines are {worst:.3g} off there, exact ones 3e-08",
            worst,
            show,
        )
    return f"cosines up to {worst:.1g} off to position {line[-1]:,}, a score moves by {score:.1g}"


LOSSY = 0.01
"""By how much a score may move: what rounding queries to bfloat16 does to it anyway."""


def _scores_moved(error: Tensor) -> Tensor:
    """The standard deviation of q·k / √d for random q and k of size one, by such an error."""
    pairs = error.shape[1] // 2
    return error.square().sum(1).mul(2).sqrt() / (2 * pairs) ** 0.5


QUESTIONS: tuple[Question, ...] = (
    encodes_the_sequence,
    leaves_its_input_alone,
    keeps_no_state,
    same_at_another_length,
    is_a_rotation,
    is_relative,
    positions_stay_apart,
    decodes_as_it_prefills,
    rows_have_their_own_positions,
    has_known_frequencies,
    is_as_configured,
    is_precise,
    keeps_positions_in_16_bits,
    survives_a_cast,
    gradients_flow,
)
Ask = Callable[[RotaryInquiry], Answer]
