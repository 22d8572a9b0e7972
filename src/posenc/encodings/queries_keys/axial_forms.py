"""How published models share the channels of a head among the axes of a grid."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from posenc.arguments import check_multiple, check_positive_number, is_row
from posenc.encodings.queries_keys.axes import Arrangement
from posenc.frequencies import Geometric, Powers, Schedule
from posenc.numerics.pairing import Pairing, Rotated

Split = tuple[int, ...] | Callable[[int], tuple[int, ...]]


@dataclass(frozen=True)
class AxialForm:
    """Which channels of a head turn by which axis, in which pairs, and how fast.

    Attributes:
        axes: A letter an axis, in the order of the coordinates of a position.
        formula: The angles in words.
        split: Channels of each axis, or a function of the width of a head. The rest is not rotated.
        base: b, one for all axes or one each.
        pairing: Which channels form a pair, of all that are rotated together.
        by_axis: Whether channels pair within the block of their axis instead.
        order: The axes in the order of their pairs; that of ``axes`` if not given.
        arrangement: ``"contiguous"``: one run of pairs an axis; ``"interleaved"``: dealt out in
            turn.
        shared: Whether the frequencies b^(−2j/r) of all r channels are dealt out to the axes in
            turn, in the order of ``axes``; otherwise an axis of d channels has its own, b^(−2i/d).
        rotated: Which channels of a wider head are rotated.

    Example:
        >>> thirds = AxialForm("thirds", "thw", "[t | h | w], each b^(−2i/8)", split=(8, 8, 8))
        >>> thirds.pairs(thirds.widths(24))
        (0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2)
    """

    name: str
    axes: str
    formula: str
    split: Split
    base: float | tuple[float, ...] = 10_000.0
    pairing: Pairing = "interleaved"
    by_axis: bool = False
    order: str | None = None
    arrangement: Arrangement = "contiguous"
    shared: bool = False
    rotated: Rotated = "prefix"

    @property
    def in_order(self) -> str:
        """The axes in the order of their pairs."""
        return self.axes if self.order is None else self.order

    def widths(self, head_dim: int) -> tuple[int, ...]:
        """Channels of each axis in a head of some width."""
        split = self.split(head_dim) if callable(self.split) else self.split
        return checked_split(split, len(self.axes), head_dim)

    def pairs(self, widths: Sequence[int]) -> tuple[int, ...]:
        """The axis of each pair."""
        order = [self.axes.index(axis) for axis in self.in_order]
        if self.arrangement == "contiguous":
            return tuple(axis for axis in order for _ in range(widths[axis] // 2))
        # Round by round: an axis takes part as long as it has pairs left.
        rounds = range(max(widths) // 2)
        return tuple(axis for turn in rounds for axis in order if turn < widths[axis] // 2)

    def schedules(
        self, widths: Sequence[int], base: float | Sequence[float] | None = None
    ) -> tuple[Schedule, ...]:
        """The frequencies of each axis."""
        bases = checked_bases(self.base if base is None else base, len(widths))
        if not self.shared:
            return tuple(Geometric(width, each) for width, each in zip(widths, bases, strict=True))
        if len(set(widths)) > 1 or len(set(bases)) > 1:
            given = f"widths are {tuple(widths)} and bases {bases}"
            raise ValueError(f"{given}; {self.name} shares those of one width and one base.")
        step, rotated = 2 * len(widths), sum(widths)
        return tuple(
            Powers(bases[0], tuple(range(2 * axis, rotated, step)), rotated)
            for axis in range(len(widths))
        )


def checked_split(split: Sequence[int], axes: int, head_dim: int) -> tuple[int, ...]:
    """The channels of each axis, all even and together no more than a head has."""
    even = all(width % 2 == 0 for width in split)
    if len(split) != axes or not even or min(split) < 2 or sum(split) > head_dim:
        wanted = f"{axes} even widths, together {head_dim} channels at most"
        raise ValueError(f"split is {tuple(split)}; it must be {wanted}.")
    return tuple(split)


def checked_bases(base: float | Sequence[float], axes: int) -> tuple[float, ...]:
    """One base an axis."""
    bases = tuple(base) if is_row(base) else (base,) * axes
    if len(bases) != axes:
        raise ValueError(f"base is {base!r}; it must be one number, or {axes}, one an axis.")
    for each in bases:
        check_positive_number(base=each)
    return bases  # type: ignore[return-value]


def halves(head_dim: int) -> tuple[int, ...]:
    """Half of a head for each of two axes."""
    check_multiple(4, head_dim=head_dim)
    return head_dim // 2, head_dim // 2


def wan_thirds(head_dim: int) -> tuple[int, ...]:
    """2⌊d/6⌋ for height and for width, the rest for time."""
    third = 2 * (head_dim // 6)
    return head_dim - 2 * third, third, third


def cogvideox_eighths(head_dim: int) -> tuple[int, ...]:
    """⌊d/4⌋ for time, 3⌊d/8⌋ for height and for width."""
    return head_dim // 4, head_dim // 8 * 3, head_dim // 8 * 3


TWO = "[y | x], each b^(−4i/d), i < d/4"
TURNED = "[x | y], each b^(−4i/d), i < d/4"
DEALT = "[y | x], b^(−2j/d): even j to y, odd j to x"
HALVES = "half of a head an axis, in their order, each b^(−4i/d), i < d/4"
THREE = "[t | h | w], an axis of d channels b^(−2i/d)"

ALL = (
    AxialForm("rope_vit", "yx", TURNED, halves, 100.0, order="xy"),
    AxialForm("pixtral", "yx", DEALT, halves, pairing="half", shared=True),
    AxialForm("eva02", "yx", TWO, halves),
    AxialForm("llama4_vision", "yx", TURNED, halves, order="xy"),
    AxialForm("qwen2_vl", "yx", TWO, halves, pairing="half"),
    AxialForm("gemma4_vision", "yx", HALVES, halves, 100.0, "half", by_axis=True, order="xy"),
    AxialForm("croco", "yx", HALVES, halves, 100.0, pairing="half", by_axis=True),
    AxialForm("flux", "thw", THREE, (16, 56, 56)),
    AxialForm("flux2", "thwl", "[t | h | w | l], each b^(−2i/32)", (32, 32, 32, 32), 2000.0),
    AxialForm("wan", "thw", THREE, wan_thirds),
    AxialForm("hunyuan_video", "thw", THREE, (16, 56, 56), 256.0),
    AxialForm("qwen_image", "thw", THREE, (16, 56, 56)),
    AxialForm("cogvideox", "thw", THREE, cogvideox_eighths),
    AxialForm("minimax_h3", "thw", THREE, (32, 32, 32), pairing="half"),
)
FORMS = {form.name: form for form in ALL}
"""By name: axes, split, base and pairing as the models have them."""
