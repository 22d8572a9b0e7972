"""Rotary encodings of one or several axes, handled alike."""

from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule

Encoding = Rotary | MultimodalRotary


def bare(encoding: Encoding) -> Rotary:
    """An encoding without its axes."""
    return encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding


def on_axes_of(held: Encoding, rotary: Rotary) -> Encoding:
    """``rotary`` with the axes of ``held``."""
    if not isinstance(held, MultimodalRotary):
        return rotary
    return MultimodalRotary(rotary, held.sections, held.arrangement)  # type: ignore[arg-type]


def with_frequencies(held: Encoding, schedule: Schedule) -> Encoding:
    """The same encoding by other frequencies."""
    return on_axes_of(held, bare(held).with_frequencies(schedule))


def facts_of(encoding: Encoding) -> tuple[object, ...]:
    """Widths, pairing, the channels that rotate, and the axis of each pair."""
    rotary = bare(encoding)
    axes = encoding.sincos.axes if isinstance(encoding, MultimodalRotary) else None
    return rotary.rotated_dim, rotary.head_dim, rotary.pairing, rotary.rotated, axes


def same_angles(one: Encoding, other: Encoding) -> bool:
    """Whether two encodings are alike, up to float64's last digits."""
    if facts_of(one) != facts_of(other):
        return False
    mine, theirs = bare(one).frequencies, bare(other).frequencies
    return abs(mine.attention_factor - theirs.attention_factor) < 1e-12 and all(
        abs(a - b) <= 1e-12 * abs(a) for a, b in zip(mine.turns(), theirs.turns(), strict=True)
    )


def points_of(encoding: nn.Module, position_ids: Tensor) -> Tensor:
    """Position ids as an encoding takes them: with one coordinate an axis last, if it has axes.

    One row stands for all axes, as in text.
    """
    if not isinstance(encoding, MultimodalRotary):
        return position_ids
    if position_ids.ndim < 3:
        return position_ids[..., None].expand(*position_ids.shape, len(encoding.sections))
    return position_ids.movedim(0, -1)
