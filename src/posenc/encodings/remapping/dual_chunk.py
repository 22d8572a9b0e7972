"""Dual chunk attention: distances within a chunk, to the one before, and beyond."""

from dataclasses import dataclass

from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.remapping.remapped import PairRemapping, RemappedPairs
from posenc.positions import pair_distances


@dataclass(frozen=True)
class DualChunk(PairRemapping):
    """Keys count from the beginning of their chunk; queries stand where the chunk of a key asks.

    With s = c − l, p′ = p mod s and n′ = n mod s:
    distance(p, n) = p − n                 in the same chunk of s tokens,
    distance(p, n) = min(p′ + s, c) − n′   for n in the chunk before,
    distance(p, n) = min(2s − 1, c) − n′   for n in an earlier one

    ``RemappedRotary`` puts it into attention with rotary positions. For texts of L′ tokens beyond
    the trained length L the authors' code for Llama multiplies cosines and sines with m = 0.05 ·
    ln(L′ / L) + 1 besides, as ``Temperature(heads, scale=m**2)`` behind it does; the paper's
    results are without.

    Args:
        chunk: c; three quarters of the trained length in the authors' code.
        local: l, the local window; of the trained length an eighth in the authors' code for Llama
            and Mistral, a sixteenth in that for Qwen and for decoding.

    Reference:
        An et al. 2024, "Training-Free Long-Context Scaling of Large Language Models"
        (arXiv:2402.17463); the two cut-offs at c as in the authors' code.

    Example:
        >>> DualChunk(chunk=5, local=1).distance([9], range(10))
        tensor([[5, 4, 3, 2, 5, 4, 3, 2, 1, 0]])
    """

    chunk: int = 3072
    local: int = 256

    def __post_init__(self):
        check_whole(local=self.local)
        check_whole(self.local + 1, chunk=self.chunk)

    def remapped_pairs(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[RemappedPairs, ...]:
        """Pairs in neighboring chunks, and those further apart."""
        step = self.chunk - self.local
        queries, keys = q_positions % step, k_positions % step
        chunks = pair_distances(q_positions // step, k_positions // step)
        next_to = (queries + step).clamp(max=self.chunk)
        beyond = queries * 0 + min(2 * step - 1, self.chunk)
        return (RemappedPairs(next_to, keys, chunks == 1), RemappedPairs(beyond, keys, chunks > 1))
