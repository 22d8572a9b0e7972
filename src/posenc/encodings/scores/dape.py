"""DAPE: a bias that a small network adapts to the scores, of one pair or of neighboring keys."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.bias import ScoreBias, take_claims
from posenc.encodings.repeats import check_repeats
from posenc.encodings.scores.content import Content, OfBothPositions, OfContent, of_each
from posenc.encodings.shapes import Biases, BothPositions, Device, Dtype, Places, Scores
from posenc.guards import floating
from posenc.numerics.product import products, without_autocast
from posenc.positions import checked, checked_distances


class DAPE(OfContent):
    """scores + B + f([scores, B]), f a network over the heads of one pair

    f maps the 2·heads numbers of a query and a key, scores and bias B of all heads, to ``heads``
    numbers: one hidden layer, leaky ReLU. B is any bias: ``ALiBi``, ``KERPLE``, ``FIRE`` in the
    paper. Without one it is scores + f(scores), as the authors have it over rotary positions.

    Load layers 0 and 2 of a checkpoint's ``mlp2`` as ``expand`` and ``contract``.

    Args:
        bias: The bias B, for as many heads, or None.

    Reference:
        Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation",
        equation 3 (arXiv:2405.14722); ``DAPE.py`` of chuanyang-Zheng/DAPE, without a bias
        ``DAPEV1`` in its ``positional_embeddings.py``.

    Example:
        >>> from posenc import ALiBi
        >>> DAPE(4, ALiBi(4))(torch.randn(1, 4, 5, 5)).shape
        torch.Size([1, 4, 5, 5])
    """

    is_relative = is_pairwise = takes_reals = True

    def __init__(
        self,
        heads: int,
        bias: ScoreBias | None,
        hidden: int = 32,
        *,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden)
        if bias is not None:
            check_bias(heads, bias)
        self.heads, self.bias, self.hidden = heads, bias, hidden
        take_claims(self, *([] if bias is None else [bias]))
        factory = {"device": device, "dtype": dtype}
        self.expand = nn.Linear(heads if bias is None else 2 * heads, hidden, **factory)
        self.contract = nn.Linear(hidden, heads, **factory)

    def reset_parameters(self) -> None:
        """Draw both layers, as ``torch.nn.Linear`` does; the bias keeps its own."""
        self.expand.reset_parameters()
        self.contract.reset_parameters()

    def table(self, q_positions: Places, k_positions: Places, *, dtype: Dtype = None) -> Biases:
        if self.bias is not None:
            return self.bias.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        queries = checked(q_positions, "q_positions", reals=True)
        keys = checked(k_positions, "k_positions", reals=True)
        rows = torch.broadcast_shapes(queries.shape[:-1], keys.shape[:-1])
        zero = torch.zeros((), dtype=floating(dtype), device=queries.device)
        return zero.expand(*rows, self.heads, queries.shape[-1], keys.shape[-1])

    def changed(self, scores: Scores, table: Biases, content: Content) -> Scores:
        wide = scores.dtype
        bias = table.to(wide).expand(scores.shape)
        parts = [scores] if self.bias is None else [scores, bias]
        pairs = torch.cat(parts, dim=-3).movedim(-3, -1)
        inner = F.leaky_relu(products(pairs, self.expand.weight) + self.expand.bias.to(wide))
        made = products(inner, self.contract.weight) + self.contract.bias.to(wide)
        return scores + bias + made.movedim(-1, -3)


def check_bias(heads: int, bias: object) -> None:
    """``bias`` is a bias of so many heads."""
    if not isinstance(bias, ScoreBias) or bias.heads != heads:
        raise ValueError(f"bias is {bias!r}; it must be a ScoreBias of {heads} heads.")


class DAPEv2(OfBothPositions):
    """scores + B + f([scores, B]), f two convolutions over ``kernel`` neighboring keys

    with leaky ReLU between them, over all heads at once: DAPE_{1×kernel} of the paper; a kernel of
    1 is ``DAPE``. Keys after their query count as zeros and keep their scores; so do keys beyond
    either end of a document. Padding must not lie between the tokens of a document.

    The authors' code convolves a whole row at once, so its last query has no zeros to its right.
    Here every query has them, so that decoding equals a whole pass.

    Load layers 0 and 2 of a checkpoint's ``mlp2``, whose kernels have an axis more, as ``expand``
    and ``contract``. Its FIRE is ``FIRE(heads, threshold=256, negative_slope=0.01)`` here: their
    class halves the threshold that it is given.

    Args:
        kernel: Keys that each convolution sees, an odd number.

    Reference:
        Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length
        Extrapolation" (arXiv:2410.04798); ``positional_embeddings.py`` of chuanyang-Zheng/DAPE.

    Example:
        >>> from posenc import ALiBi
        >>> DAPEv2(4, ALiBi(4))(torch.randn(1, 4, 5, 5)).shape
        torch.Size([1, 4, 5, 5])
    """

    is_relative = reads_neighbors = True

    def __init__(
        self,
        heads: int,
        bias: ScoreBias,
        hidden: int = 32,
        kernel: int = 3,
        *,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden, kernel=kernel)
        check_bias(heads, bias)
        if kernel % 2 == 0:
            raise ValueError(f"kernel is {kernel}; it must be odd.")
        self.heads, self.bias, self.hidden, self.kernel = heads, bias, hidden, kernel
        take_claims(self, bias)
        factory = {"device": device, "dtype": dtype}
        self.expand = nn.Conv1d(2 * heads, hidden, kernel, **factory)
        self.contract = nn.Conv1d(hidden, heads, kernel, **factory)

    def reset_parameters(self) -> None:
        """Draw both layers, as ``torch.nn.Conv1d`` does; the bias keeps its own."""
        self.expand.reset_parameters()
        self.contract.reset_parameters()

    def changed(self, scores: Scores, table: BothPositions, content: Content) -> Scores:
        queries, keys = of_each(table)
        bias = self.bias.table(queries, keys, dtype=scores.dtype).expand(scores.shape)
        seen = (checked_distances(queries, keys) >= 0).unsqueeze(-3)
        pairs = torch.where(seen, torch.cat([scores, bias], dim=-3), 0)
        return torch.where(seen, scores + bias + self._convolved(pairs, keys), scores)

    def _convolved(self, pairs: Tensor, keys: Tensor) -> Tensor:
        """f at every key, from a window of its own, so that documents stay apart."""
        if 0 in pairs.shape:
            return pairs[..., : self.heads, :, :]
        reach = 2 * (self.kernel // 2)
        same, begun = _window(keys, reach)
        windows = F.pad(pairs, (reach, reach)).unfold(-1, 2 * reach + 1, 1)
        windows = torch.where(same[..., None, None, :, :], windows, 0).movedim(-4, -2)
        shape = windows.shape[:-2]
        with without_autocast(pairs):
            inner = _conv(self.expand, windows.flatten(0, -3))
            half = self.kernel // 2
            begun = begun[..., None, :, half : half + self.kernel].expand(*shape, self.kernel)
            inner = torch.where(begun.flatten(0, -2).unsqueeze(-2), F.leaky_relu(inner), 0)
            made = _conv(self.contract, inner)
        return made.squeeze(-1).unflatten(0, shape).movedim(-1, -3)


def _conv(layer: nn.Conv1d, x: Tensor) -> Tensor:
    """The layer in the dtype of ``x``."""
    return F.conv1d(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))  # type: ignore[union-attr]


def _window(
    keys: Int64[Tensor, "*rows k_len"], reach: int
) -> tuple[Bool[Tensor, "*rows k_len _"], Bool[Tensor, "*rows k_len _"]]:
    """Of the neighbors of each key: which are of its document, and which lie not before it."""
    before, after = keys[..., :-1], keys[..., 1:]  # compared: a difference may wrap
    check_repeats("DAPEv2", after > before, after == before)
    row = torch.arange(keys.shape[-1], device=keys.device)
    begins = F.pad(after <= before, (1, 0), value=True)[..., : keys.shape[-1]]
    start = torch.where(begins, row, 0).cummax(-1).values
    there = row.unsqueeze(-1) + torch.arange(-reach, reach + 1, device=keys.device)
    begun = there >= start.unsqueeze(-1)
    inside = there.clamp(0, keys.shape[-1] - 1).expand(begun.shape)
    document = start.unsqueeze(-1).expand(begun.shape)
    theirs = start.unsqueeze(-2).expand(*start.shape, start.shape[-1]).gather(-1, inside)
    return begun & (there < keys.shape[-1]) & (theirs == document), begun
