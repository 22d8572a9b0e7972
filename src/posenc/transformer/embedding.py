"""The lookup of token ids, where a transformer begins."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.tokens.addition import Scale, factor
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

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.4 (arXiv:1706.03762).

    Example:
        >>> embedding = TokenEmbedding(100, 16, padding_idx=0)
        >>> embedding(torch.tensor([[7, 3, 0]])).shape
        torch.Size([1, 3, 16])
    """

    def __init__(
        self, num_embeddings: int, dim: int, *, padding_idx: int | None = None, scale: Scale = None
    ):
        super().__init__()
        check_whole(num_embeddings=num_embeddings, dim=dim)
        if padding_idx is not None:
            check_whole(0, padding_idx=padding_idx)
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
        """
        ids = whole_ids(ids)
        if table is not None:
            rows = table.shape[:-1] if positions is None else positions.shape
            if rows[-1:] != ids.shape[-1:]:
                raise ValueError(
                    f"ids have shape {tuple(ids.shape)} and the rows of the table {tuple(rows)}; "
                    f"pass one row a token."
                )
        return embedded(
            ids, self.weight, table, positions, scale=self.factor, dropout=dropout,
            padding_idx=self.padding_idx, out=out,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments that say what is stored."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.dim}{padding}"


def whole_ids(ids: Tensor) -> Tensor:
    """Integers of any width as int64, or int32 as they were: the lookup takes no others."""
    narrow = ids.dtype not in (torch.int64, torch.int32, torch.bool)
    return ids.to(torch.int64) if narrow and not ids.is_floating_point() else ids
