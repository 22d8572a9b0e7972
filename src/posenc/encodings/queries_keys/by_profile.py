"""A rotary encoding in the arithmetic of a public implementation, bit for bit."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import checked_rows
from posenc.encodings.queries_keys.rotation import check_fit
from posenc.frequencies.schedule import Schedule
from posenc.guards import floating
from posenc.kernels.operators import written
from posenc.kernels.rotary.front import RotaryLayout
from posenc.kernels.rows import rows_at
from posenc.kernels.sincos.front import table_to_fill
from posenc.numerics.arithmetic import Profile
from posenc.numerics.joined import joined
from posenc.numerics.pairing import Pairing
from posenc.positions import Positions, checked


class RotationByProfile:
    """Tables and rotation as a profile does them, in plain tensor operations.

    Args:
        profile: Whose arithmetic.
        schedule: The frequencies.
        pairing: Which channels form a pair.

    Raises:
        ValueError: The implementation has no such schedule or pairing.
    """

    def __init__(self, profile: Profile, schedule: Schedule, pairing: Pairing):
        profile.check(schedule, pairing)
        self.profile, self.schedule = profile, schedule
        with torch.device("cpu"):  # they are numbers, also where tensors have none
            self.numbers = profile.frequencies(schedule).tolist()

    def table(
        self,
        positions: Int64[Tensor, "*shape"] | Positions,
        dtype: torch.dtype | None,
        out: Tensor | None,
    ) -> Float[Tensor, "*shape 2 pairs"]:
        """Cosines and sines in float32 as they are before the implementation keeps them.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: ``out`` has another shape or dtype.
        """
        positions = checked(positions)
        frequencies = torch.tensor(self.numbers, dtype=torch.float32, device=positions.device)
        angles = self.profile.angles(positions, frequencies, self.schedule)
        both = self.profile.cos_sin(angles, self.schedule.attention_factor)
        made = torch.stack(both, dim=-2)
        if out is None:
            return made.to(floating(dtype))
        return table_to_fill(positions, 2, made.shape[-1], dtype=dtype, out=out).copy_(made)

    def rotate(
        self,
        x: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        positions: Int64[Tensor, "*places"] | None,
        layout: RotaryLayout,
        head_dim: int,
        out: Tensor | None,
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """Heads rotated; arguments as of ``rotate_together``.

        Raises:
            TypeError: ``x`` is not floating.
            ValueError: Its width or length does not fit, or ``out`` has another shape or dtype.
            IndexError: A position is not a row of the table.
        """
        name, first = "Rotary", layout.heads_first
        row, rows = (2, len(self.numbers)), table
        if positions is not None:
            rows = rows_at(table, checked_rows(table, positions))
        check_fit(x, rows, row, name=name, head_dim=head_dim, heads_first=first)
        cos, sin = (part.unsqueeze(-3 if first else -2) for part in rows.unbind(-2))
        width = 2 * rows.shape[-1]
        begin = head_dim - width if layout.suffix else 0
        turned = self.profile.rotate(x[..., begin : begin + width], cos, sin, layout.pairing)
        parts = (x[..., :begin], turned, x[..., begin + width :])
        made = turned if width == head_dim else joined(parts, -1)
        return written(made, out)


def refuse_profile(owner: str, rotary: object) -> None:
    """Refuse a rotary encoding that is more than frequencies and layout, which ``owner`` reads.

    Raises:
        TypeError: It is of a class with methods of its own.
        ValueError: It is in somebody else's arithmetic.
    """
    if getattr(rotary, "profile", None) is not None:
        raise ValueError(
            f"{owner} was given {rotary!r}; arithmetic {rotary.arithmetic!r} is that of rotary "  # type: ignore[attr-defined]
            f"encodings alone. Build the Rotary with arithmetic='exact'."
        )
