"""A rotary encoding in the arithmetic of a public implementation, bit for bit."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import checked_rows
from posenc.encodings.queries_keys.rotation import check_rows
from posenc.encodings.shapes import CosSinRows, Dtype, Heads
from posenc.frequencies import Schedule
from posenc.guards import floating
from posenc.kernels.operators import written
from posenc.kernels.rotary.front import RotaryLayout
from posenc.kernels.rows import rows_at
from posenc.kernels.sincos.front import table_to_fill
from posenc.numerics.arithmetic import Profile
from posenc.numerics.product import joined
from posenc.positions import Positions, checked


def numbers_of(profile: Profile, schedule: Schedule) -> list[float]:
    """The frequencies that an implementation computes, made once and kept with the schedule."""
    name = "_frequencies_" + profile.name.replace(".", "_")  # graphs read no name with a dot
    found = getattr(schedule, name, None)
    if found is None:
        with torch.device("cpu"):  # they are numbers, also where tensors have none
            found = profile.frequencies(schedule).tolist()
        object.__setattr__(schedule, name, found)
    return found


def table_by_profile(
    profile: Profile,
    schedule: Schedule,
    positions: Int64[Tensor, "*shape"] | Positions,
    dtype: Dtype,
    out: Tensor | None,
) -> Float[Tensor, "*shape 2 pairs"]:
    """Cosines and sines in float32, as they are before the implementation keeps them."""
    positions = checked(positions)
    numbers = numbers_of(profile, schedule)
    frequencies = torch.tensor(numbers, dtype=torch.float32, device=positions.device)
    angles = profile.angles(positions, frequencies, schedule)
    made = torch.stack(profile.cos_sin(angles, schedule.attention_factor), dim=-2)
    if out is None:
        return made.to(floating(dtype))
    return table_to_fill(positions, 2, made.shape[-1], dtype=dtype, out=out).copy_(made)


def rotated_by_profile(
    profile: Profile,
    x: Heads,
    table: CosSinRows,
    positions: Int64[Tensor, "*places"] | None,
    layout: RotaryLayout,
    out: Tensor | None,
) -> Heads:
    """Heads rotated by rows of the table; with ``positions``, by those of a kept one."""
    if positions is not None:
        table = rows_at(table, checked_rows(table, positions))
    check_rows(x, table, tuple(table.shape[-2:]), layout.heads_first)
    cos, sin = (part.unsqueeze(-3 if layout.heads_first else -2) for part in table.unbind(-2))
    head_dim, width = x.shape[-1], 2 * table.shape[-1]
    begin = head_dim - width if layout.suffix else 0
    turned = profile.rotate(x[..., begin : begin + width], cos, sin, layout.pairing)
    parts = (x[..., :begin], turned, x[..., begin + width :])
    return written(turned if width == head_dim else joined(parts, -1), out)
