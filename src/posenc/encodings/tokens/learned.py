"""The learned encoding: one trained vector a position."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_flag, check_number, check_whole
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import add, checked_dropout
from posenc.guards import floating, may_look
from posenc.positions import Integers, checked


class Learned(TokenEncoding):
    """A trained vector for each position, added to the embeddings.

    PE(p) = weight[p + offset],  weight of shape [max_len + offset, dim]

    Nothing relates one row to another, so there is no position past the last row; ``resized``
    makes a longer encoding by interpolation.

    Args:
        dim: Width of the embeddings.
        max_len: Number of positions.
        offset: Rows before that of position 0: 2 in OPT, RoBERTa's padding index + 1 = 2.
        std: Standard deviation of the normal initialization; 0.02 in BERT.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: ``dim`` or ``max_len`` is not positive, or ``offset`` or ``std`` is negative.

    Reference:
        Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1
        (arXiv:1705.03122); Devlin et al. 2019, "BERT" (arXiv:1810.04805).

    Example:
        >>> encoding = Learned(8, max_len=512)
        >>> encoding.table(torch.tensor([0, 511])).shape
        torch.Size([2, 8])
        >>> encoding.table(torch.tensor([512]))
        Traceback (most recent call last):
        ...
        ValueError: Position 512 is outside of Learned(8, max_len=512), whose positions are \
0 … 511. Shorten the sequence, or lengthen the encoding with resized(...).
    """

    keeps_norm = False
    keeps_shift = False

    def __init__(
        self,
        dim: int,
        max_len: int,
        *,
        offset: int = 0,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(dim=dim, max_len=max_len)
        check_whole(0, offset=offset)
        check_number(0.0, std=std)
        self.dim, self.max_len, self.offset, self.std = dim, max_len, offset, std
        check_flag(batch_first=batch_first)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        self.weight = nn.Parameter(torch.empty(max_len + offset, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every row anew from N(0, std²)."""
        nn.init.normal_(self.weight, std=self.std)

    def table(
        self, positions: Int64[Tensor, "*batch seq"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*batch seq dim"]:
        """The rows of ``positions``, in the dtype of the weights unless another is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: A position is negative or past the last one.
        """
        positions = checked(positions, device=self.weight.device)
        dtype = self.weight.dtype if dtype is None else floating(dtype)
        self._check_range(positions)
        return F.embedding(positions, self.weight[self.offset :]).to(dtype)

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``; see ``posenc.encodings.tokens.addition``.

        With ``positions`` the table holds rows that are kept, and each token takes its own;
        ``out=x`` adds in place.
        """
        return add(
            x,
            table,
            positions,
            name="Learned",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
            out=out,
        )

    @torch.no_grad()
    def resized(self, max_len: int) -> "Learned":
        """A new encoding of another length, interpolated linearly along the positions.

        The first and the last position keep the middles of their cells apart, as
        ``torch.nn.functional.interpolate`` does with ``align_corners=False``; a shorter encoding is
        antialiased. The ``offset`` rows stay as they are. Interpolation runs in float32 at least.

        Raises:
            ValueError: ``max_len`` is not positive.

        Example:
            >>> Learned(8, max_len=512).resized(1024).max_len
            1024
        """
        longer = Learned(
            self.dim,
            max_len,
            offset=self.offset,
            std=self.std,
            dropout=self.dropout,
            batch_first=self.batch_first,
        ).to(self.weight)
        grid = (
            self.weight[self.offset :]
            .T[None, :, None]
            .to(torch.promote_types(self.weight.dtype, torch.float32))
        )
        resized = F.interpolate(
            grid, size=(1, max_len), mode="bilinear", align_corners=False, antialias=True
        )
        longer.weight[: self.offset] = self.weight[: self.offset]
        longer.weight[self.offset :] = resized[0, :, 0].T.to(self.weight.dtype)
        longer.weight.requires_grad_(self.weight.requires_grad)
        return longer.train(self.training)

    def _check_range(self, positions: Tensor) -> None:
        # Where values cannot be looked at, the lookup itself complains.
        if not may_look(positions) or not positions.numel():
            return
        first, last = (int(end) for end in positions.aminmax())
        if first < 0 or last >= self.max_len:
            raise ValueError(
                f"Position {last if last >= self.max_len else first} is outside of {self!r}, whose "
                f"positions are 0 … {self.max_len - 1}. Shorten the sequence, or lengthen the "
                f"encoding with resized(...)."
            )

    def extra_repr(self) -> str:
        """The arguments that say what is stored."""
        offset = f", offset={self.offset}" if self.offset else ""
        return f"{self.dim}, max_len={self.max_len}{offset}"
