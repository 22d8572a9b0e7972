"""The sinusoidal encoding of Vaswani et al., in every convention that is in use."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_flag
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import Scale, add, checked_dropout, factor
from posenc.encodings.tokens.conventions import CONVENTIONS, Convention
from posenc.kernels.sincos.front import cos_sin, table_to_fill
from posenc.numerics.columns import columns_of
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Positions
from posenc.positions.checks import shifted


class Sinusoidal(TokenEncoding):
    """Sines and cosines of many wavelengths, added to the embeddings.

    PE(p, 2i) = sin(p / n^(2i/d)),  PE(p, 2i+1) = cos(p / n^(2i/d))

    with position p, pair i, width d = ``dim`` and n = ``base``; the other conventions are listed in
    ``posenc.encodings.tokens.conventions``. There is no longest length: a table is exact at any
    int64 position, and at any real one (``Coordinates``): correctly rounded up to float32, within
    3 ulp in float64. The arguments are fixed once it is built; build another for others.

    Args:
        dim: Width of the embeddings.
        base: n. The longest wavelength approaches 2π·n positions.
        convention: A name, or a ``Convention`` of your own.
        scale: What the embeddings are multiplied with before the sum: ``"sqrt_dim"`` for the
            paper's √d, a number, or nothing.
        dropout: Probability of dropping an element of the sum while training; 0.1 in the paper.
        offset: Number of the first position: 2 in M2M100 (padding index + 1). Position + offset
            must be an int64 too.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
        arithmetic: ``"exact"``, or ``"float32"`` / ``"float32-log"`` for the common formulas bit
            for bit: the power 1/n^(2i/d), or the tutorials' exp(−2i·ln n/d).

    Raises:
        ValueError: An unknown convention, or a width that the convention does not have.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.5 (arXiv:1706.03762).

    Example:
        >>> encoding = Sinusoidal(4, base=100.0)
        >>> encoding.table(torch.tensor([0, 1]))
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0998, 0.9950]])
        >>> encoding(torch.zeros(2, 7, 4)).shape
        torch.Size([2, 7, 4])
    """

    takes_reals = True

    def __init__(
        self,
        dim: int,
        base: float = 10_000.0,
        convention: str | Convention = "paper",
        *,
        scale: Scale = None,
        dropout: float = 0.0,
        offset: int = 0,
        batch_first: bool = True,
        arithmetic: Arithmetic = "exact",
    ):
        super().__init__()
        if isinstance(offset, bool) or not isinstance(offset, int) or abs(offset) > 2**62:
            raise TypeError(f"offset is {offset!r}; it must be a whole number, as 2.")
        check_flag(batch_first=batch_first)
        self.dim, self.base, self.offset, self.batch_first = dim, base, offset, batch_first
        self.convention = _named(convention)
        self.scale, self.dropout = scale, checked_dropout(dropout)
        self.waveform = self.convention.sincos(dim, base)
        self.factor = factor(scale, dim)
        self.arithmetic: Arithmetic = arithmetic
        # Row p turns pair i by the angle p·ω_i: a rotation, where every sine has its cosine.
        self.keeps_norm = self.keeps_shift = self.waveform.paired
        self.cosines = SinCos(self.waveform.cosines, arithmetic)
        self.sines = (
            self.cosines if self.waveform.paired else SinCos(self.waveform.sines, arithmetic)
        )

    def table(
        self,
        positions: Int64[Tensor, "*batch seq"] | Positions,
        *,
        dtype: torch.dtype | None = None,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """PE at ``positions``, float32 unless another dtype is asked for.

        ``out`` is a table of this shape to fill.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: ``out`` has another shape or dtype.
        """
        positions = shifted(positions, self.offset + self.convention.first, reals=True)
        table = table_to_fill(positions, self.dim, dtype=dtype, out=out)
        if self.dim % 2:
            table.zero_()
        if self.waveform.paired:
            columns = columns_of(table, self.waveform.cosine_channels, self.waveform.sine_channels)
            cos_sin(self.cosines, positions, table.dtype, out=columns, fresh=out is None)
        else:
            cosine_columns = table[..., _columns(self.waveform.cosine_channels)]
            sine_columns = table[..., _columns(self.waveform.sine_channels)]
            cosine_columns.copy_(cos_sin(self.cosines, positions, table.dtype)[0])
            sine_columns.copy_(cos_sin(self.sines, positions, table.dtype)[1])
        return table

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x · scale + table)``; see ``posenc.encodings.tokens.addition``.

        With ``positions`` the table holds rows that are kept, and each token takes its own;
        ``out=x`` adds in place.
        """
        return add(
            x,
            table,
            positions,
            name="Sinusoidal",
            factor=self.factor,
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
            out=out,
        )

    def extra_repr(self) -> str:
        """The arguments that are not at their defaults."""
        told = [str(self.dim)]
        for name, default in DEFAULTS.items():
            value = getattr(self, name)
            value = value.name if isinstance(value, Convention) else value
            if value != default:
                told.append(f"{name}={value!r}")
        return ", ".join(told)


DEFAULTS = {
    "base": 10_000.0,
    "convention": "paper",
    "scale": None,
    "dropout": 0.0,
    "offset": 0,
    "batch_first": True,
    "arithmetic": "exact",
}


def _named(convention: str | Convention) -> Convention:
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise ValueError(
            f"convention is {convention!r}; it must be one of {', '.join(CONVENTIONS)}, or a "
            f"Convention."
        )
    return CONVENTIONS[convention]


def _columns(channels: range) -> slice:
    return slice(channels.start, channels.stop, channels.step)
