"""Rotary encodings of one or several axes, handled alike."""

from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule

Rotation = Rotary | MultimodalRotary


def bare(rotation: Rotation) -> Rotary:
    """A rotation without its axes."""
    return rotation.rotary if isinstance(rotation, MultimodalRotary) else rotation


def on_axes_of(held: Rotation, rotary: Rotary) -> Rotation:
    """``rotary`` with the axes of ``held``."""
    if not isinstance(held, MultimodalRotary):
        return rotary
    return MultimodalRotary(rotary, held.sections, held.arrangement)  # type: ignore[arg-type]


def with_frequencies(held: Rotation, schedule: Schedule) -> Rotation:
    """The same rotation by other frequencies."""
    return on_axes_of(held, bare(held).with_frequencies(schedule))


def facts_of(rotation: Rotation) -> tuple[object, ...]:
    """Widths, pairing, the channels that rotate, and the axis of each pair."""
    rotary = bare(rotation)
    axes = rotation.sincos.axes if isinstance(rotation, MultimodalRotary) else None
    return rotary.rotated_dim, rotary.head_dim, rotary.pairing, rotary.rotated, axes


def same_angles(one: Rotation, other: Rotation) -> bool:
    """Whether two rotations are alike, up to float64's last digits."""
    if facts_of(one) != facts_of(other):
        return False
    mine, theirs = bare(one).frequencies, bare(other).frequencies
    return abs(mine.attention_factor - theirs.attention_factor) < 1e-12 and all(
        abs(a - b) <= 1e-12 * abs(a) for a, b in zip(mine.turns(), theirs.turns(), strict=True)
    )


def points_of(rotation: nn.Module, position_ids: Tensor) -> Tensor:
    """Position ids as a rotation takes them: with one coordinate an axis last, if it has axes."""
    if not isinstance(rotation, MultimodalRotary):
        return position_ids
    if position_ids.ndim < 3:
        return position_ids[..., None].expand(*position_ids.shape, len(rotation.sections))
    return position_ids.movedim(0, -1)
