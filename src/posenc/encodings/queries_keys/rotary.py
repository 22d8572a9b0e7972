"""The rotary encoding of Su et al., with any schedule of frequencies."""

from numbers import Integral
from typing import get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_choice, check_flag, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.by_profile import RotationByProfile
from posenc.encodings.queries_keys.rotation import RotaryLayout, rotate_together, rotation_table
from posenc.frequencies import Geometric, Schedule
from posenc.numerics.arithmetic import PROFILES
from posenc.numerics.pairing import Pairing, Rotated, checked_pairing
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Positions


class Rotary(QueryKeyEncoding):
    """Each pair of channels of queries and keys, rotated by position × frequency.

    (a_i, b_i) → (a_i cos pω_i − b_i sin pω_i,  b_i cos pω_i + a_i sin pω_i)

    with position p and the frequencies ω_i of a schedule. The product of a query at m and a key at
    n depends on m − n alone, since R(m)ᵀR(n) = R(n − m). There is no longest length: a table is
    exact at any int64 position, and at any real one (``Coordinates``): correctly rounded up to
    float32, within 3 ulp in float64.

    Args:
        frequencies: A schedule, or the rotated width r for ``Geometric(r, base)``.
        base: Base of ``Geometric``, 10000 if not given; a schedule has its own.
        head_dim: Width of a head, where it is more than the rotated width.
        pairing: ``"half"`` pairs channels i and i + r/2, ``"interleaved"`` 2i and 2i + 1.
        rotated: Which channels of a wider head are rotated: the first (``"prefix"``, GPT-NeoX) or
            the last (``"suffix"``, DeepSeek).
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]`` or
            ``[*batch, seq, heads, head_dim]``. It is never guessed.
        arithmetic: ``"exact"``; ``"float32"`` for the common table bit for bit; or the name of a
            public implementation, whose table and rotation are done in its order and dtypes:
            ``"transformers"``, ``"vllm"``, ``"vllm-native"``, ``"sglang"``, ``"megatron"``,
            ``"torchtitan"``, ``"torchtune"``, ``"flash-attention"``, ``"llama.cpp"``, ``"mlx"``
            (``posenc.numerics.arithmetic``). These take no real coordinates.

    Raises:
        TypeError: A schedule that depends on the length was not resolved by ``at(length)``, or a
            base is given beside a schedule.
        ValueError: A width that is odd or too small, an unknown name, or an arithmetic that has no
            such schedule or pairing.

    Reference:
        Su et al. 2021, "RoFormer", equations 14, 15 and 34 (arXiv:2104.09864).

    Example:
        >>> rotary = Rotary(64, base=500_000)
        >>> q, k = torch.randn(2, 8, 5, 64), torch.randn(2, 2, 5, 64)
        >>> table = rotary.table(torch.arange(5))
        >>> rotary.encode_queries(q, table).shape, rotary.encode_keys(k, table).shape
        (torch.Size([2, 8, 5, 64]), torch.Size([2, 2, 5, 64]))
    """

    is_relative = True
    takes_reals = True
    reads_rows = True

    def __init__(
        self,
        frequencies: int | Schedule,
        *,
        base: int | float | None = None,
        head_dim: int | None = None,
        pairing: Pairing = "half",
        rotated: Rotated = "prefix",
        heads_first: bool = True,
        arithmetic: str = "exact",
    ):
        super().__init__()
        self.frequencies = _schedule(frequencies, base)
        checked_pairing(pairing)
        self.profile = _profile(arithmetic, self.frequencies, pairing)
        own = "exact" if self.profile is not None else arithmetic
        self.sincos = SinCos(self.frequencies, own)  # type: ignore[arg-type]
        # Floating positions are rounded, each by itself: scores follow where tokens stand, too.
        self.takes_reals = self.is_relative = self.profile is None
        self.rotated_dim = 2 * len(self.sincos)
        self.head_dim = self.rotated_dim if head_dim is None else head_dim
        check_whole(head_dim=self.head_dim)
        if self.head_dim < self.rotated_dim:
            raise ValueError(
                f"head_dim is {head_dim}; {len(self.sincos)} frequencies rotate "
                f"{self.rotated_dim} channels. Build the schedule for a width of at most "
                f"{head_dim}."
            )
        self.pairing: Pairing = checked_pairing(pairing)
        check_choice(get_args(Rotated), rotated=rotated)
        self.rotated: Rotated = rotated
        check_flag(heads_first=heads_first)
        self.heads_first = heads_first
        self.arithmetic = arithmetic
        self.layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", heads_first)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq"] | Positions,
        *,
        dtype: torch.dtype | None = None,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions``, times the attention factor of the schedule.

        float32 unless another dtype is asked for; ``out`` is a table of this shape to fill.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: ``out`` has another shape or dtype.
        """
        if self.profile is not None:
            return self.profile.table(positions, dtype, out)
        factor = self.frequencies.attention_factor
        return rotation_table(self.sincos, positions, dtype, factor, out)

    def encode_queries(
        self,
        q: Float[Tensor, "*batch heads q_len head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch heads q_len head_dim"]:
        """``q`` rotated; ``out=q`` rotates it in place."""
        return self._rotate(q, table, out)

    def encode_keys(
        self,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch kv_heads k_len head_dim"]:
        """``k`` rotated as queries are; ``out=k`` rotates it in place."""
        return self._rotate(k, table, out)

    def encode_both(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        k: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        positions: Int64[Tensor, "..."] | None = None,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """``encode_queries`` and ``encode_keys`` in one call, as a step of decoding wants them.

        Args:
            q: Queries.
            k: Keys of the same tokens; they may have fewer heads.
            table: One row a token; with ``positions``, rows 0, 1, 2, … that are kept.
            positions: Which row each token takes, ``[*batch, seq]``. They are read where they are
                used, so nothing is gathered first.
            out: Where to write both; ``out=(q, k)`` rotates in place. In the arithmetic of a public
                implementation queries are written before keys are read: their place must be apart
                from keys, and from the place of these.

        Raises:
            ValueError: Widths or lengths do not fit, or the table is that of another width, or does
                not hold one row a position.
            IndexError: A position is not a row of the table.

        Example:
            >>> rotary = Rotary(64)
            >>> kept = rotary.table(torch.arange(1000))
            >>> q, k = torch.randn(1, 8, 1, 64), torch.randn(1, 2, 1, 64)
            >>> q, k = rotary.encode_both(q, k, kept, torch.tensor([123]))
        """
        contents = (q, k)
        if self.profile is not None:
            given = out or (None, None)
            return tuple(  # type: ignore[return-value]
                self.profile.rotate(x, table, positions, self.layout, self.head_dim, o)
                for x, o in zip(contents, given, strict=True)
            )
        outs = contents if out is not None and out[0] is q and out[1] is k else out
        widths = self.head_dim, self.rotated_dim
        return rotate_together(contents, table, positions, self.layout, "Rotary", *widths, outs)  # type: ignore[return-value]

    def _rotate(self, x: Tensor, table: Tensor, out: Tensor | None) -> Tensor:
        if self.profile is not None:
            return self.profile.rotate(x, table, None, self.layout, self.head_dim, out)
        contents = (x,)
        outs = None if out is None else contents if out is x else (out,)
        widths = self.head_dim, self.rotated_dim
        return rotate_together(contents, table, None, self.layout, "Rotary", *widths, outs)[0]

    def with_frequencies(self, frequencies: int | Schedule) -> "Rotary":
        """The same encoding with another schedule, as to extend the context of a model.

        It is a ``Rotary``, whatever a class derived from it does otherwise.

        Example:
            >>> longer = Rotary(8, pairing="interleaved").with_frequencies(Geometric(8, 1e6))
            >>> longer
            Rotary(Geometric(dim=8, base=1000000.0), pairing='interleaved')
        """
        return Rotary(
            frequencies,
            head_dim=self.head_dim,
            pairing=self.pairing,
            rotated=self.rotated,
            heads_first=self.heads_first,
            arithmetic=self.arithmetic,
        )

    def extra_repr(self) -> str:
        """The schedule, and the arguments that are not at their defaults."""
        told = [repr(self.frequencies)]
        if self.head_dim != self.rotated_dim:
            told.append(f"head_dim={self.head_dim}")
        for name, default in DEFAULTS.items():
            if getattr(self, name) != default:
                told.append(f"{name}={getattr(self, name)!r}")
        return ", ".join(told)


DEFAULTS = {"pairing": "half", "rotated": "prefix", "heads_first": True, "arithmetic": "exact"}


def _profile(arithmetic: str, schedule: Schedule, pairing: Pairing) -> RotationByProfile | None:
    """What does the arithmetic of a public implementation; None for our own kinds."""
    own = get_args(Arithmetic)
    check_choice(tuple(dict.fromkeys((*own, *PROFILES))), arithmetic=arithmetic)
    if arithmetic in own:
        return None
    return RotationByProfile(PROFILES[arithmetic], schedule, pairing)


def _schedule(frequencies: int | Schedule, base: int | float | None) -> Schedule:
    if base is not None and not isinstance(frequencies, Integral):
        raise TypeError(
            f"base is {base} beside {frequencies!r}, which has its own. Give the base to the "
            f"schedule, or a width instead of a schedule, as Rotary(64, base={base})."
        )
    if isinstance(frequencies, Schedule):
        return frequencies
    if hasattr(frequencies, "at"):
        raise TypeError(
            f"{type(frequencies).__name__} depends on the length of the sequences. Choose one: "
            f"pass it as {type(frequencies).__name__}(...).at(length)."
        )
    schedule = Geometric(frequencies) if base is None else Geometric(frequencies, base)
    if frequencies % 2:
        raise ValueError(
            f"The rotated width is {frequencies}; channels turn in pairs, so it must be even."
        )
    return schedule
