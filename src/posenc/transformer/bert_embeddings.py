"""Where BERT begins: three embeddings summed and normalized."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.tokens import Learned
from posenc.guards import hooked, recorded
from posenc.positions import consecutive
from posenc.transformer.embedding import TokenEmbedding, checked_ids, ends_of
from posenc.transformer.normalization import LayerNorm


class BertEmbeddings(nn.Module):
    """Words, token types and positions of tokens, summed and normalized.

    y = LayerNorm(words[id] + token_types[type] + positions[p])

    Scales, offsets and dropout of the parts are those of BERT: none.

    Args:
        dim: Width of a vector.
        num_embeddings: Number of different tokens.
        max_len: Number of positions.
        types: Number of token types.
        padding_idx: The id of padding, if there is one.
        eps: ε of the norm.

    Raises:
        ValueError: A size is not positive.

    Reference:
        Devlin et al. 2019, "BERT", figure 2 (arXiv:1810.04805).

    Example:
        >>> import torch
        >>> embeddings = BertEmbeddings(16, num_embeddings=100, max_len=64)
        >>> embeddings(torch.tensor([[5, 7, 9]])).shape
        torch.Size([1, 3, 16])
    """

    def __init__(
        self,
        dim: int,
        *,
        num_embeddings: int,
        max_len: int,
        types: int = 2,
        padding_idx: int | None = None,
        eps: float = 1e-12,
    ):
        super().__init__()
        check_whole(types=types)
        self.words = TokenEmbedding(num_embeddings, dim, padding_idx=padding_idx)
        self.token_types = TokenEmbedding(types, dim)
        self.positions = Learned(dim, max_len)
        self.norm = LayerNorm(dim, eps)

    def forward(
        self,
        ids: Int64[Tensor, "*batch seq"],
        token_types: Int64[Tensor, "..."] | None = None,
        positions: Int64[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """The normalized sums.

        Args:
            ids: Token ids.
            token_types: Which sentence a token belongs to, or a whole row does, ``[*batch, 1]``;
                all to the first if not given. One row of ids with types of several gives several.
            positions: Where the tokens stand; at 0, 1, 2, … if not given.

        Raises:
            TypeError: Ids or types are no tensor of integers.
            ValueError: An id, a type or a position is outside of its embedding, or types are not
                one a token or a row.
        """
        ids = self.words.checked(ids)
        length = ids.shape[-1]
        types = ids.new_zeros(length) if token_types is None else token_types
        places = consecutive(length, device=ids.device) if positions is None else positions
        types = checked_ids(
            types, "token_types", "[*batch, seq] or [*batch, 1]", "Pass token_types.long()."
        )
        _check_types(types, ids, self.token_types.num_embeddings)
        if self._in_one_pass(ids, types):
            x = self.words(ids, self.token_types.weight, types.expand(ids.shape))
        else:
            x = self.words(ids) + self.token_types(types)
        return self.norm(self.positions(x, places))

    def _in_one_pass(self, ids: Tensor, types: Tensor) -> bool:
        """Whether words take the other table along, and nothing tells this from a sum of two."""
        words, kinds = self.words.weight, self.token_types.weight
        alike = torch.broadcast_shapes(ids.shape, types.shape) == ids.shape
        if not alike or words.dtype != kinds.dtype or recorded(words, kinds):
            return False
        return not hooked(self.words) and not hooked(self.token_types)


def _check_types(types: Tensor, ids: Tensor, count: int) -> None:
    pairs = zip(types.shape[::-1], ids.shape[::-1], strict=False)
    if not all(own == size or 1 in (own, size) for own, size in pairs):
        raise ValueError(
            f"token_types have shape {tuple(types.shape)} and ids {tuple(ids.shape)}. Pass one a "
            f"token, or one a row, [*batch, 1]."
        )
    first, last = ends_of(types)
    if first < 0 or last >= count:
        wrong = last if last >= count else first
        larger = f"Build BertEmbeddings with types={last + 1} or more, or pass"
        raise ValueError(
            f"Token type {wrong} is none of {count}, which are 0 … {count - 1}. "
            f"{larger if wrong > 0 else 'Pass'} one of these."
        )
