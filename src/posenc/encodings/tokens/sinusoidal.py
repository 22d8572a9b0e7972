"""The sinusoidal encoding of Vaswani et al., in every convention that is in use."""

from torch import Tensor

from posenc.arguments import check_choice, check_whole
from posenc.encodings.shapes import Dtype, Embeddings, Row
from posenc.encodings.tokens.addition import Added, Scale
from posenc.encodings.tokens.conventions import CONVENTIONS, Convention
from posenc.kernels.sincos.front import cos_sin, fill_columns, table_to_fill
from posenc.numerics.columns import channels_of
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import checked


class Sinusoidal(Added):
    """Sines and cosines of many wavelengths, added to the embeddings.

    PE(p, 2i) = sin(p / n^(2i/d)),  PE(p, 2i+1) = cos(p / n^(2i/d))

    with position p, pair i, width d = ``dim`` and n = ``base``; for other conventions see
    ``posenc.encodings.tokens.conventions``. A table is correctly rounded up to float32, and within
    3 ulp in float64, at any int64 position and any real one (``Coordinates``).

    Args:
        base: n. The longest wavelength approaches 2π·n positions.
        convention: A name, or a ``Convention`` of your own.
        scale: A factor of the embeddings before the sum: ``"sqrt_dim"`` for the paper's √d, a
            number.
        offset: Number of the first position: 2 in M2M100 (padding index + 1).
        arithmetic: ``"exact"``, or ``"float32"`` / ``"float32-log"`` for the common formulas bit
            for bit: the power 1/n^(2i/d), or the tutorials' exp(−2i·ln n/d).

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.5 (arXiv:1706.03762).

    Example:
        >>> import torch
        >>> Sinusoidal(4, base=100.0).table(torch.tensor([0, 1]))
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0998, 0.9950]])
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
        if not isinstance(convention, Convention):
            check_choice(tuple(CONVENTIONS), convention=convention)
            convention = CONVENTIONS[convention]
        check_whole(-(2**62), offset=offset)
        waveform = convention.sincos(dim, base)
        super().__init__(dim, scale=scale, dropout=dropout, batch_first=batch_first)
        self.base, self.convention, self.offset = base, convention, offset
        self.waveform = waveform
        self.arithmetic: Arithmetic = arithmetic
        # Row p turns pair i by the angle p·ω_i: a rotation, where every sine has its cosine.
        self.keeps_norm = self.keeps_shift = waveform.paired
        self.cosines = SinCos(waveform.cosines, arithmetic)
        self.sines = self.cosines if waveform.paired else SinCos(waveform.sines, arithmetic)
        places = waveform.cosine_channels, waveform.sine_channels
        self.channels = channels_of(*places) if waveform.paired else None

    def table(
        self, positions: Row, *, dtype: Dtype = None, out: Tensor | None = None
    ) -> Embeddings:
        """PE at ``positions``; ``out`` is a table of this shape to fill."""
        positions = checked(positions, reals=True)
        if first := self.offset + self.convention.first:
            positions = positions + first
        table = table_to_fill(positions, self.dim, dtype=dtype, out=out)
        if self.dim % 2:
            table.zero_()
        if self.channels is not None:
            columns = self.channels.of(table)
            fill_columns(self.cosines, positions, columns, fresh=out is None)
        else:
            cosines, sines = self.waveform.cosine_channels, self.waveform.sine_channels
            table[..., _slice(cosines)] = cos_sin(self.cosines, positions, table.dtype)[0]
            table[..., _slice(sines)] = cos_sin(self.sines, positions, table.dtype)[1]
        return table


def _slice(channels: range) -> slice:
    return slice(channels.start, channels.stop, channels.step)
