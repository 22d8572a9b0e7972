"""Where BERT begins: three embeddings summed and normalized."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.tokens import Learned
from posenc.guards import hooked, recorded
from posenc.positions import consecutive
from posenc.transformer.embedding import TokenEmbedding, whole_ids
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
        """
        length = ids.shape[-1]
        types = ids.new_zeros(length) if token_types is None else whole_ids(token_types)
        places = consecutive(length, device=ids.device) if positions is None else positions
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
