"""Selective RoPE: every token says how far it turns what comes after it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_multiple, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import check_unrotated
from posenc.encodings.repeats import check_repeats
from posenc.encodings.scores.content import Content, OfDistance, steps_of_keys
from posenc.encodings.scores.remapped_rotary import check_rotary, radians, rotated_by
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.guards import may_look
from posenc.numerics.pairing import split
from posenc.numerics.product import products
from posenc.positions import in_float64

EPSILON = 1e-6


class SelectiveRoPE(OfDistance):
    """score_ij = (R(θ_i) q_i) · (R(θ_j) k_j) · scale,  θ_t = ω ⊙ Σ_{s≤t} g_s (φ_s + exp(b))

    where φ_t = Σ_m c_m ⊙ u_{t−m}, a causal convolution over ``kernel`` tokens, of u = U D x̂, and
    x̂ is the hidden state with each of its ``heads`` parts brought to length 1. ω are the
    frequencies of ``rotary``. The bias b and the gate g_t = σ(G x̂_t + a), one number a head, are
    options. φ = 1 at every token is ``Rotary``.

    Scores are computed anew from unrotated queries and keys, so it comes first among encodings of
    scores, without a rotary encoding. A cache keeps u beside unrotated keys. Padding must not lie
    between the tokens of a document.

    The paper makes u of the query; the authors' code, and this, of the hidden state.

    Args:
        rotary: The rotation: schedule, pairing and width of heads; the authors' base is 500000.
        dim: Width of the hidden state, which ``heads`` must divide.
        kernel: Tokens that the convolution sees, its own among them.
        bias: Whether there is a bias; exp(b) begins at 1.

    Reference:
        Movahedi et al. 2025, "Selective Rotary Position Embedding" (arXiv:2511.17388);
        ``SelectiveRoPE`` in timurcarstensen/selective-rope, in its low-rank form.

    Example:
        >>> selective, x = SelectiveRoPE(2, Rotary(4), dim=16), torch.randn(1, 5, 16)
        >>> q, k = torch.randn(2, 1, 2, 5, 4)
        >>> selective(q @ k.mT / 2, q=q, k=k, q_hidden=x, k_hidden=x).shape
        torch.Size([1, 2, 5, 5])
    """

    reads_neighbors = makes_anew = reads_hidden = True
    check_beside = check_unrotated

    def __init__(
        self,
        heads: int,
        rotary: Rotary,
        dim: int,
        rank: int = 16,
        kernel: int = 4,
        *,
        gate: bool = False,
        bias: bool = False,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, rank=rank, kernel=kernel)
        check_rotary(rotary)
        check_multiple(heads, dim=dim)
        self.heads, self.rotary, self.dim, self.rank, self.kernel = heads, rotary, dim, rank, kernel
        self.pairs = len(rotary.sincos)
        width, factory = heads * self.pairs, {"device": device, "dtype": dtype}
        self.down = nn.Parameter(torch.empty(rank, dim, **factory))
        self.up = nn.Parameter(torch.empty(width, rank, **factory))
        self.convolution = nn.Parameter(torch.empty(width, kernel, **factory))
        self.gate = nn.Parameter(torch.empty(heads, dim, **factory)) if gate else None
        self.gate_bias = nn.Parameter(torch.empty(heads, **factory)) if gate else None
        self.bias = nn.Parameter(torch.empty(heads, self.pairs, **factory)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw maps as ``torch.nn.Linear`` does, and set biases to 0."""
        for weight in (self.down, self.up, self.convolution, self.gate):
            if weight is not None:
                nn.init.kaiming_uniform_(weight, a=5**0.5)
        for bias in (self.gate_bias, self.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len _"]:
        """u of every head, side by side, and the gate of each, if there is one."""
        x = hidden.to(working_dtype(hidden.dtype)).unflatten(-1, (self.heads, -1))
        x = (x * (x.square().sum(-1, keepdim=True) + EPSILON).rsqrt()).flatten(-2)
        u = products(products(x, self.down), self.up)
        if self.gate is None or self.gate_bias is None:
            return u
        return torch.cat([u, (products(x, self.gate) + self.gate_bias.to(x.dtype)).sigmoid()], -1)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        document, alone = _documents(table)
        steps = self._steps(content.k_features, document)
        turned = self._by_tokens if alone else self._by_pairs
        # Sums are where float64 is.
        places = table.to(steps.device), document.to(steps.device)
        factor = content.scale * self.rotary.frequencies.attention_factor**2
        return turned(content.q, content.keys, steps, *places) * factor

    def _steps(self, features: Tensor, document: Tensor) -> Float[Tensor, "*batch heads k_len _"]:
        """ω g (φ + exp(b)): by how much each token turns what comes after it."""
        said, taps = in_float64(features), in_float64(self.convolution)
        document = document.to(said.device)
        u = said[..., : self.heads * self.pairs]
        phi = u * taps[:, -1]
        for back in range(1, min(self.kernel, u.shape[-2])):
            before = F.pad(u[..., :-back, :], (0, 0, back, 0))
            same = F.pad(document[..., back:] == document[..., :-back], (back, 0), value=False)
            phi = phi + torch.where(same.unsqueeze(-1), before, 0) * taps[:, -1 - back]
        phi = phi.unflatten(-1, (self.heads, self.pairs))
        if self.bias is not None:
            phi = phi + in_float64(self.bias).exp()
        if self.gate is not None:
            phi = phi * said[..., -self.heads :].unsqueeze(-1)
        return (phi * radians(self.rotary, phi.device)).transpose(-2, -3)

    def _by_tokens(
        self, q: Tensor, k: Tensor, steps: Tensor, distance: Tensor, document: Tensor
    ) -> Tensor:
        """Each query turned by the sum up to its position, and each key by the sum up to it."""
        angles = F.pad(steps.cumsum(-2), (0, 0, 1, 0))
        reached = (distance >= 0).sum(-1)[..., None, :, None]
        of_queries = angles.gather(-2, reached.expand(*q.shape[:-1], self.pairs))
        there_q = rotated_by(self.rotary, q, of_queries)
        return products(there_q, rotated_by(self.rotary, k, angles[..., 1:, :]))

    def _by_pairs(
        self, q: Tensor, k: Tensor, steps: Tensor, distance: Tensor, document: Tensor
    ) -> Tensor:
        """Every pair of tokens turned by the sum between them, in the document of the key."""
        seen = (distance >= 0).unsqueeze(-3)
        begin, end = (place.unsqueeze(-2).unsqueeze(-2) for place in _ends(document))
        (q_first, q_second, q_rest), (k_first, k_second, k_rest) = self._split(q), self._split(k)
        total = products(q_rest, k_rest)
        for pair in range(self.pairs):
            own = steps[..., pair].unsqueeze(-2)
            sums = F.pad(torch.where(seen, own, 0).cumsum(-1), (1, 0))
            reached = sums.gather(-1, end.expand(q.shape[:-1] + k.shape[-2:-1]))
            reached = reached - sums.gather(-1, begin.expand(reached.shape))
            sums = F.pad(own.cumsum(-1), (1, 0))
            angle = reached - (sums[..., 1:] - sums.gather(-1, begin.expand(own.shape)))
            a, b = q_first[..., pair, None], q_second[..., pair, None]
            c, d = k_first[..., None, :, pair], k_second[..., None, :, pair]
            along, across = a * c + b * d, b * c - a * d
            cos, sin = (part.to(q.dtype).to(q.device) for part in (angle.cos(), angle.sin()))
            total = total + along * cos - across * sin
        return total

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The two channels of every pair, and those that are not rotated."""
        width = 2 * self.pairs
        last = self.rotary.rotated == "suffix"
        inner, rest = (
            (x[..., x.shape[-1] - width :], x[..., : x.shape[-1] - width])
            if last
            else (x[..., :width], x[..., width:])
        )
        return (*split(inner, self.rotary.pairing), rest)


def _documents(distance: Distances) -> tuple[Tensor, bool]:
    """Which document each key is of, by number; and whether it is known that there is but one."""
    step = steps_of_keys(distance)
    known = may_look(step)
    if distance.shape[-2]:
        check_repeats("SelectiveRoPE", step > 0, step == 0)
    begins = F.pad(step <= 0, (1, 0), value=False)[..., : distance.shape[-1]]
    return begins.cumsum(-1), known and not bool(begins.any())


def _ends(document: Int64[Tensor, "*rows k_len"]) -> tuple[Tensor, Tensor]:
    """For each key the first index of its document, and the first after it."""
    index = torch.arange(document.shape[-1], device=document.device)
    new = F.pad(document.diff(dim=-1) != 0, (1, 0), value=True)[..., : document.shape[-1]]
    begin = torch.where(new, index, 0).cummax(-1).values
    old = F.pad(new[..., 1:], (0, 1), value=True)[..., : document.shape[-1]]
    end = torch.where(old, index + 1, document.shape[-1]).flip(-1).cummin(-1).values.flip(-1)
    return begin, end
