"""The lookup of token ids, where a transformer begins."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.tokens.addition import Scale, factor
from posenc.guards import check_dense, may_look
from posenc.kernels.embedding.front import embedded


class TokenEmbedding(nn.Module):
    """One trained vector a token, ids [*batch, seq] to vectors [*batch, seq, dim].

    E(id) = scale · weight[id],  weight of shape [num_embeddings, dim], drawn from N(0, 1)

    Args:
        num_embeddings: Number of different tokens.
        dim: Width of a vector.
        padding_idx: The id of padding, if there is one: its vector is zero and stays so.
        scale: What vectors are multiplied with: ``"sqrt_dim"`` for the paper's √d, a number, or
            nothing. An encoding of the tokens place may scale instead; do it in one place only.

    Raises:
        ValueError: ``num_embeddings`` or ``dim`` is not positive, or ``padding_idx`` is no id.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.4 (arXiv:1706.03762).

    Example:
        >>> embedding = TokenEmbedding(100, 16, padding_idx=0)
        >>> embedding(torch.tensor([[7, 3, 0]])).shape
        torch.Size([1, 3, 16])
        >>> embedding(torch.tensor([100]))
        Traceback (most recent call last):
        ...
        ValueError: Token id 100 is outside of a vocabulary of 100, whose ids are 0 … 99. Build \
TokenEmbedding with num_embeddings=101 or more, or map unknown tokens and padding to an id that \
exists.
    """

    def __init__(
        self, num_embeddings: int, dim: int, *, padding_idx: int | None = None, scale: Scale = None
    ):
        super().__init__()
        check_whole(num_embeddings=num_embeddings, dim=dim)
        whole = isinstance(padding_idx, int) and not isinstance(padding_idx, bool)
        if padding_idx is not None and not (whole and 0 <= padding_idx < num_embeddings):
            raise ValueError(
                f"padding_idx is {padding_idx!r}; with num_embeddings={num_embeddings} it must be "
                f"one of 0 … {num_embeddings - 1}, or None."
            )
        self.num_embeddings, self.dim, self.padding_idx = num_embeddings, dim, padding_idx
        self.factor = factor(scale, dim)
        self.weight = nn.Parameter(torch.empty(num_embeddings, dim))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, 1); that of padding becomes zero."""
        nn.init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight[self.padding_idx].zero_()

    def forward(
        self,
        ids: Int64[Tensor, "*batch seq"],
        table: Float[Tensor, "*rows {self.dim}"] | None = None,
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        dropout: float = 0.0,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq {self.dim}"]:
        """The vectors of ``ids``, and the rows of a table added in the same pass if there is one.

        Args:
            ids: Tokens.
            table: What an encoding of the tokens place adds: ``encoding.table(...)``, one row a
                token; with ``positions``, rows 0, 1, 2, … that are kept.
            positions: Which row of the table each token takes.
            dropout: Probability of dropping an element of the sum.
            out: Where to write the result, if no gradients are recorded.

        Raises:
            TypeError: ``ids`` are not integers.
            ValueError: An id is negative or past the vocabulary, there is not one row of the table
                a token, or positions come without a table.
            IndexError: A position is not a row of the table.
        """
        ids = self.checked(ids)
        if table is not None or positions is not None:
            self._check_rows(ids, table, positions)
        return embedded(
            ids,
            self.weight,
            table,
            positions,
            scale=self.factor,
            dropout=dropout,
            padding_idx=self.padding_idx,
            out=out,
        )

    def _check_rows(self, ids: Tensor, table: Tensor | None, positions: Tensor | None) -> None:
        """Refuse a table of other tokens, of which one row might serve all."""
        if table is None:
            raise ValueError("positions were given and no table whose rows they are. Pass both.")
        rows = table.shape[:-1] if positions is None else positions.shape
        held = ids.shape[max(ids.ndim - len(rows), 0) :]
        fits = (
            0 < len(rows) <= ids.ndim
            and rows[-1] == held[-1]
            and all(row in (1, size) for row, size in zip(rows, held, strict=True))
        )
        if not (fits and table.shape[-1] == self.dim and table.is_floating_point()):
            told = "" if positions is None else f" and positions {tuple(positions.shape)}"
            raise ValueError(
                f"ids have shape {tuple(ids.shape)}, the table {tuple(table.shape)} of "
                f"{table.dtype}{told}; pass one floating row of {self.dim} a token."
            )

    def checked(self, ids: Tensor) -> Tensor:
        """``ids`` as int64, or int32 as they were; in words why they are none of this vocabulary.

        Raises:
            TypeError: They are not integers.
            ValueError: An id is negative or past the vocabulary.
        """
        ids = checked_ids(ids)
        first, last = ends_of(ids)
        if first < 0 or last >= self.num_embeddings:
            count, wrong = self.num_embeddings, last if last >= self.num_embeddings else first
            larger = f"Build TokenEmbedding with num_embeddings={last + 1} or more, or map"
            raise ValueError(
                f"Token id {wrong} is outside of a vocabulary of {count}, whose ids are "
                f"0 … {count - 1}. {larger if wrong > 0 else 'Map'} unknown tokens and padding to "
                f"an id that exists."
            )
        return ids

    def extra_repr(self) -> str:
        """The arguments that say what is stored."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.dim}{padding}"


def checked_ids(
    ids: Tensor,
    name: str = "ids",
    axes: str = "[*batch, seq]",
    otherwise: str = "Look tokens up in the vocabulary first.",
) -> Tensor:
    """``ids`` as int64, or int32 as they were.

    Raises:
        TypeError: They are not integers.
    """
    if not isinstance(ids, Tensor):
        raise TypeError(
            f"{name} are a {type(ids).__name__}; they must be a tensor of integers {axes}. "
            f"Pass torch.as_tensor({name})."
        )
    check_dense(**{name: ids})
    if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        raise TypeError(
            f"{name} are {ids.dtype}; they must be integers (int64) {axes}. {otherwise}"
        )
    # the lookup takes no narrower ones
    return ids if ids.dtype in (torch.int64, torch.int32) else ids.to(torch.int64)


def ends_of(ids: Tensor) -> tuple[int, int]:
    """The least and the largest of them; 0 and 0 where there is none, or nobody may look.

    Values cannot be looked at while compiling or on meta; there the lookup itself complains.
    """
    if not may_look(ids) or not ids.numel():
        return 0, 0
    first, last = (int(end) for end in ids.aminmax())
    return first, last
