"""The rotary encoding of Su et al., with any schedule of frequencies."""

from collections.abc import Sequence
from numbers import Integral
from typing import get_args

from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice, check_multiple, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.by_profile import (
    numbers_of,
    rotated_by_profile,
    table_by_profile,
)
from posenc.encodings.queries_keys.rotation import (
    check_widths,
    rotate_together,
    rotation_table,
    sincos_of,
)
from posenc.encodings.shapes import CosSin, CosSinRows, Dtype, Heads, Row
from posenc.encodings.told import arguments_told
from posenc.frequencies import Geometric, Schedule, as_schedule
from posenc.guards import working_dtype
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.arithmetic import PROFILES, Profile
from posenc.numerics.pairing import Pairing, Rotated
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import checked, consecutive


class Rotary(QueryKeyEncoding):
    """Each pair of channels of queries and keys, rotated by position × frequency.

    (a_i, b_i) → (a_i cos pω_i − b_i sin pω_i,  b_i cos pω_i + a_i sin pω_i)

    with position p and the frequencies ω_i of a schedule. The product of a query at m and a key at
    n depends on m − n alone, since R(m)ᵀR(n) = R(n − m). A table is exact at any int64 position and
    any real one (``Coordinates``): correctly rounded up to float32, within 3 ulp in float64.

    Args:
        frequencies: A schedule (rope scaling), a list or tensor of radians per position, or the
            rotated width r for ``Geometric(r, base)``.
        base: Base of ``Geometric``, 10000 if not given; a schedule has its own.
        head_dim: Width of a head, where it is more than the rotated width.
        pairing: ``"half"`` pairs channels i and i + r/2, ``"interleaved"`` 2i and 2i + 1.
        rotated: Which channels of a wider head are rotated: the first (``"prefix"``, GPT-NeoX) or
            the last (``"suffix"``, DeepSeek).
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]`` or
            ``[*batch, seq, heads, head_dim]``.
        arithmetic: ``"exact"``; ``"float32"`` for the common table bit for bit; or a public
            implementation, whose table and rotation are done in its order and dtypes:
            ``"transformers"``, ``"vllm"``, ``"vllm-native"``, ``"sglang"``, ``"megatron"``,
            ``"torchtitan"``, ``"torchtune"``, ``"flash-attention"``, ``"llama.cpp"``, ``"mlx"``.
            These take no real coordinates.

    Reference:
        Su et al. 2021, "RoFormer", equations 14, 15 and 34 (arXiv:2104.09864).

    Example:
        >>> import torch
        >>> rotary, q, k = Rotary(64), torch.randn(2, 8, 5, 64), torch.randn(2, 2, 5, 64)
        >>> table = rotary.table(torch.arange(5))
        >>> rotary.encode_queries(q, table).shape, rotary.encode_keys(k, table).shape
        (torch.Size([2, 8, 5, 64]), torch.Size([2, 2, 5, 64]))
    """

    reads_rows = True

    def __init__(
        self,
        frequencies: int | Schedule | Tensor | Sequence[float],
        *,
        base: int | float | None = None,
        head_dim: int | None = None,
        pairing: Pairing = "half",
        rotated: Rotated = "prefix",
        heads_first: bool = True,
        arithmetic: str = "exact",
    ):
        super().__init__()
        check_choice(get_args(Pairing), pairing=pairing)
        check_choice(get_args(Rotated), rotated=rotated)
        own = get_args(Arithmetic)
        check_choice(tuple(dict.fromkeys((*own, *PROFILES))), arithmetic=arithmetic)
        self.arithmetic = arithmetic
        self.profile: Profile | None = None if arithmetic in own else PROFILES[arithmetic]
        self.pairing: Pairing = pairing
        self.frequencies = schedule_of(frequencies, base)
        # Floating positions are rounded, each by itself: scores follow where tokens stand, too.
        self.takes_reals = self.is_relative = self.profile is None
        self.rotated_dim = 2 * len(self.sincos)
        self.head_dim = self.rotated_dim if head_dim is None else head_dim
        check_whole(self.rotated_dim, head_dim=self.head_dim)
        self.rotated: Rotated = rotated
        self.heads_first = heads_first
        self.layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", heads_first)

    @property
    def frequencies(self) -> Schedule:
        """The schedule; another one may be set."""
        return self._frequencies

    @frequencies.setter
    def frequencies(self, frequencies: Schedule | Tensor | Sequence[float]) -> None:
        self._frequencies = as_schedule(frequencies)
        if self.profile is not None:
            self.profile.check(self._frequencies, self.pairing)
            numbers_of(self.profile, self._frequencies)  # made now, which no graph can
        len(self.sincos)  # likewise

    @property
    def sincos(self) -> SinCos:
        """The cosines and sines of the schedule."""
        own = self.arithmetic if self.profile is None else "exact"
        return sincos_of(self._frequencies, own)  # type: ignore[arg-type]

    def table(self, positions: Row, *, dtype: Dtype = None, out: Tensor | None = None) -> CosSin:
        """cos and sin, times the attention factor; ``out`` is a table of this shape to fill."""
        frequencies = self._frequencies
        if self.profile is not None:
            return table_by_profile(self.profile, frequencies, positions, dtype, out)
        sincos = sincos_of(frequencies, self.arithmetic)  # type: ignore[arg-type]
        return rotation_table(sincos, positions, dtype, frequencies.attention_factor, out)

    def encode_queries(self, q: Heads, table: CosSinRows, *, out: Tensor | None = None) -> Heads:
        """``q`` rotated; ``out=q`` rotates it in place."""
        if q.shape[-1] != self.head_dim or 2 * table.shape[-1] != self.rotated_dim:
            check_widths((q,), table, self.head_dim, self.rotated_dim)
        if self.profile is not None:
            return rotated_by_profile(self.profile, q, table, None, self.layout, out)
        contents = (q,)
        outs = None if out is None else contents if out is q else (out,)
        return rotate_together(contents, table, None, self.layout, outs)[0]

    def encode_keys(self, k: Heads, table: CosSinRows, *, out: Tensor | None = None) -> Heads:
        """``k`` rotated as queries are; ``out=k`` rotates it in place."""
        return self.encode_queries(k, table, out=out)

    def encode_both(
        self,
        q: Heads,
        k: Heads,
        table: CosSinRows,
        positions: Int64[Tensor, "..."] | None = None,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """``encode_queries`` and ``encode_keys`` in one call, as a step of decoding needs them.

        With ``positions`` ``[*batch, seq]`` the table is one of kept rows 0, 1, 2, …, which are
        read where they are used. ``out=(q, k)`` rotates in place.
        """
        contents, width = (q, k), self.head_dim
        fits = q.shape[-1] == k.shape[-1] == width and 2 * table.shape[-1] == self.rotated_dim
        if not fits:
            check_widths(contents, table, width, self.rotated_dim)
        if self.profile is not None:
            outs = out or (None, None)
            return tuple(  # type: ignore[return-value]
                rotated_by_profile(self.profile, x, table, positions, self.layout, into)
                for x, into in zip(contents, outs, strict=True)
            )
        outs = contents if out is not None and out[0] is q and out[1] is k else out
        return rotate_together(contents, table, positions, self.layout, outs)  # type: ignore[return-value]

    def encode(self, x: Heads, positions: Row | None = None) -> Heads:
        """Queries or keys alone, rotated at ``positions``, or at 0, 1, 2, …

        Example:
            >>> Rotary(64).encode(torch.randn(1, 8, 10, 64)).shape
            torch.Size([1, 8, 10, 64])
        """
        if positions is None:
            positions = consecutive(x.shape[-2 if self.heads_first else -3], device=x.device)
        at = checked(positions, device=x.device, reals=self.takes_reals)
        return self.encode_queries(x, self.table(at, dtype=working_dtype(x.dtype)))

    def with_frequencies(self, frequencies: int | Schedule | Tensor | Sequence[float]) -> "Rotary":
        """The same encoding with another schedule, as to extend the context of a model."""
        return Rotary(
            frequencies,
            head_dim=self.head_dim,
            pairing=self.pairing,
            rotated=self.rotated,
            heads_first=self.heads_first,
            arithmetic=self.arithmetic,
        )

    def extra_repr(self) -> str:
        return arguments_told(self, head_dim=self.rotated_dim)

    def _repr_html_(self) -> str:
        from posenc.encodings.in_html import in_html

        return in_html({"queries_keys": [self], "head_dim": self.head_dim})


def schedule_of(
    frequencies: int | Schedule | Tensor | Sequence[float], base: int | float | None = None
) -> Schedule:
    """A schedule as it is, one of a row of numbers, or ``Geometric`` of a width."""
    if isinstance(frequencies, Integral):
        width = int(frequencies)
        check_multiple(2, width=width)
        return Geometric(width) if base is None else Geometric(width, base)
    if base is not None:
        raise TypeError(f"base is {base}, and {frequencies!r} has its own.")
    return as_schedule(frequencies)  # type: ignore[arg-type]


def check_alike(one: Rotary, other: Rotary) -> None:
    """Refuse two encodings that differ in more than their frequencies."""
    names = ("head_dim", "rotated_dim", "pairing", "rotated", "heads_first", "profile")
    differ = [name for name in names if getattr(one, name) != getattr(other, name)]
    if differ:
        raise ValueError(f"{one} and {other} differ in {', '.join(differ)}; frequencies alone may.")


class AroundRotary(QueryKeyEncoding):
    """An encoding that rotates as the ``Rotary`` that it holds, by a table of its own."""

    is_relative = takes_reals = True

    def __init__(self, rotary: Rotary):
        super().__init__()
        if not isinstance(rotary, Rotary):
            raise TypeError(f"rotary is {rotary!r}; it must be a Rotary, as Rotary(64).")
        if rotary.profile is not None:
            raise ValueError(f"rotary is {rotary!r}; its arithmetic must be 'exact' or 'float32'.")
        self.rotary = rotary
        self.head_dim, self.heads_first = rotary.head_dim, rotary.heads_first

    def encode_queries(self, q: Heads, table: CosSinRows, *, out: Tensor | None = None) -> Heads:
        """``q`` rotated; ``out=q`` rotates it in place."""
        return self.rotary.encode_queries(q, table, out=out)

    def encode_keys(self, k: Heads, table: CosSinRows, *, out: Tensor | None = None) -> Heads:
        return self.rotary.encode_queries(k, table, out=out)
