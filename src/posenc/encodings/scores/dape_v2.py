"""DAPE v2: a bias adapted to the scores of neighboring keys, by convolutions along the row."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.bias import ScoreBias, take_claims
from posenc.encodings.repeats import check_repeats
from posenc.encodings.scores.both import both_positions, of_each
from posenc.encodings.scores.content import checked_content
from posenc.encodings.scores.dape import check_bias
from posenc.positions import Integers, checked_distances


class DAPEv2(ScoreEncoding):
    """scores + B + f([scores, B]), f two convolutions over ``kernel`` neighboring keys

    with leaky ReLU between them, over all heads at once: DAPE_{1×kernel} of the paper; a kernel of
    1 is ``DAPE``. Keys after their query count as zeros, as in the authors' code, and their scores
    are left as they are. So are keys beyond either end of a document; a packed row is convolved
    document by document.

    Where the authors' code convolves a whole row at once, its last query has no zeros to its right
    where all others have them: units of the hidden layer that lie past the row are left out. Here
    every query is treated as those others are, so that a decoded token equals that of a whole pass.

    Documents are known by positions that fall or repeat, and so is padding, which must stand before
    or behind a document's tokens, not between them. What a mask hides is a neighbor all the same;
    ``attention`` and encoders refuse a mask that may stand for either. Memory is that of
    4 · ⌊kernel/2⌋ + 1 copies of the scores and the bias.

    The network of a checkpoint is ``mlp2`` there: load its layers 0 and 2, whose kernels have an
    axis of one more, as ``expand`` and ``contract``. Where the bias is FIRE, it is theirs as
    ``FIRE(heads, threshold=256, negative_slope=0.01)``: the threshold that their class is given
    is halved there.

    Args:
        heads: Number of query heads.
        bias: The bias B, for as many heads.
        hidden: Width of the hidden layer.
        kernel: Keys that each convolution sees, an odd number.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        TypeError: ``bias`` is no ``ScoreBias``.
        ValueError: A number is not positive, ``kernel`` is even, the bias is of other heads, or
            positions repeat between others that rise, as far as can be seen.

    Reference:
        Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length
        Extrapolation" (arXiv:2410.04798); ``positional_embeddings.py`` of chuanyang-Zheng/DAPE.

    Example:
        >>> from posenc import ALiBi
        >>> dape = DAPEv2(4, ALiBi(4))
        >>> dape(torch.randn(1, 4, 5, 5)).shape
        torch.Size([1, 4, 5, 5])
    """

    is_relative = True
    is_pairwise = False  # it looks at neighboring keys
    reads_neighbors = True

    def __init__(
        self,
        heads: int,
        bias: ScoreBias,
        hidden: int = 32,
        kernel: int = 3,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden, kernel=kernel)
        check_bias("DAPEv2", heads, bias)
        if kernel % 2 == 0:
            raise ValueError(f"kernel is {kernel}; it must be odd, so that a key is in its middle.")
        self.heads, self.bias, self.hidden, self.kernel = heads, bias, hidden, kernel
        take_claims(self, bias)
        factory = {"device": device, "dtype": dtype}
        self.expand = nn.Conv1d(2 * heads, hidden, kernel, **factory)
        self.contract = nn.Conv1d(hidden, heads, kernel, **factory)

    def reset_parameters(self) -> None:
        """Draw both layers anew, as ``torch.nn.Conv1d`` does; the bias keeps its own."""
        self.expand.reset_parameters()
        self.contract.reset_parameters()

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch 2 q_len k_len"]:
        """The two positions of every pair, which say what the bias is and where documents begin."""
        return both_positions(q_positions, k_positions)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows 2 q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with the bias and what f makes of both, in float32 at least, rounded once."""
        checked_content("DAPEv2", self.heads, scores)
        wide = scores.to(working_dtype(scores.dtype))
        queries, keys = of_each(table)
        bias = self.bias.table(queries, keys, dtype=wide.dtype).expand(wide.shape)
        seen = (checked_distances(queries, keys) >= 0).unsqueeze(-3)
        pairs = torch.where(seen, torch.cat([wide, bias], dim=-3), 0)
        made = wide + bias + self._convolved(pairs, keys)
        return torch.where(seen, made, wide).to(scores.dtype)

    def _convolved(self, pairs: Tensor, keys: Tensor) -> Tensor:
        """f at every key, from a window of its own, so that documents stay apart."""
        if 0 in pairs.shape:
            return pairs[..., : self.heads, :, :]
        reach = 2 * (self.kernel // 2)
        same, begun = _window(keys, reach)
        windows = F.pad(pairs, (reach, reach)).unfold(-1, 2 * reach + 1, 1)
        windows = torch.where(same[..., None, None, :, :], windows, 0).movedim(-4, -2)
        shape = windows.shape[:-2]
        with torch.autocast(pairs.device.type, enabled=False):
            inner = _conv(self.expand, windows.flatten(0, -3))
            half = self.kernel // 2
            begun = begun[..., None, :, half : half + self.kernel].expand(*shape, self.kernel)
            inner = torch.where(begun.flatten(0, -2).unsqueeze(-2), F.leaky_relu(inner), 0)
            made = _conv(self.contract, inner)
        return made.squeeze(-1).unflatten(0, shape).movedim(-1, -3)

    def extra_repr(self) -> str:
        """The arguments besides the bias."""
        return f"heads={self.heads}, hidden={self.hidden}, kernel={self.kernel}"


def _conv(layer: nn.Conv1d, x: Tensor) -> Tensor:
    """The layer in the dtype of ``x``."""
    assert layer.bias is not None
    return F.conv1d(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))


def _window(keys: Int64[Tensor, "*rows k_len"], reach: int) -> tuple[Tensor, Tensor]:
    """Of the neighbors of each key: which are of its document, and which lie not before it begins.

    Both are ``[*rows, k_len, 2 · reach + 1]``.
    """
    before, after = keys[..., :-1], keys[..., 1:]  # compared: a difference may wrap
    check_repeats("DAPEv2", after > before, after == before)
    row = torch.arange(keys.shape[-1], device=keys.device)
    begins = F.pad(after <= before, (1, 0), value=True)[..., : keys.shape[-1]]
    start = torch.where(begins, row, 0).cummax(-1).values
    there = row.unsqueeze(-1) + torch.arange(-reach, reach + 1, device=keys.device)
    begun = there >= start.unsqueeze(-1)
    inside = there.clamp(0, max(keys.shape[-1] - 1, 0)).expand(begun.shape)
    document = start.unsqueeze(-1).expand(begun.shape)
    theirs = start.unsqueeze(-2).expand(*start.shape, start.shape[-1]).gather(-1, inside)
    return begun & (there < keys.shape[-1]) & (theirs == document), begun
