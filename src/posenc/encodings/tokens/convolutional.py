"""wav2vec 2.0's convolutional encoding: where a token stands is read off its neighbors."""

from collections.abc import Mapping
from math import sqrt

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_multiple, check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.repeats import check_repeats
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholeRow
from posenc.encodings.tokens.addition import check_fit
from posenc.encodings.told import arguments_told
from posenc.guards import may_look
from posenc.numerics.product import without_autocast
from posenc.positions import checked

NO_RUN = -1


class Convolutional(TokenEncoding):
    """A wide convolution over the sequence, added to the embeddings.

    y_p = x_p + GELU(b + Σ_o W_o x_{p+o}),  o = −⌊k/2⌋ … ⌈k/2⌉ − 1

    with W_o of shape [dim, dim] in ``groups`` blocks. A token depends on k others, so it cannot be
    encoded alone or decoded with a cache. The table holds the positions. Tokens whose positions do
    not follow one another by 1, as in packed documents, do not see each other. Padding must stand
    before or behind a document, as ``left_padded(mask)`` has it.

    wav2vec 2.0, HuBERT, WavLM, UniSpeech and SEW have one such layer, whose weights are normalized
    for each o. data2vec has five, one after the other inside the GELU:
    ``Convolutional(dim, 19, depth=5, weight_norm=False, layer_norm=True)``.

    Args:
        kernel: k, the number of tokens that one depends on; 128 in wav2vec 2.0.
        groups: Blocks of channels that do not see each other; 16.
        depth: Number of layers; each is a convolution, a layer norm if there is one, and a GELU.
        weight_norm: Whether the weight of each o has a length of its own and a direction.
        layer_norm: Whether channels are normalized before the GELU, without parameters.

    Reference:
        Baevski et al. 2020, "wav2vec 2.0", section 2 (arXiv:2006.11477), after Mohamed et al. 2019
        (arXiv:1904.11660); Baevski et al. 2022, "data2vec" (arXiv:2202.03555).

    Example:
        >>> Convolutional(32, kernel=8)(torch.randn(2, 50, 32)).shape
        torch.Size([2, 50, 32])
    """

    is_pointwise = False

    def __init__(
        self,
        dim: int,
        kernel: int = 128,
        groups: int = 16,
        *,
        depth: int = 1,
        weight_norm: bool = True,
        layer_norm: bool = False,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(kernel=kernel, groups=groups, depth=depth)
        check_multiple(groups, dim=dim)
        super().__init__()
        self.dim, self.kernel, self.groups, self.depth = dim, kernel, groups, depth
        self.weight_norm, self.layer_norm = weight_norm, layer_norm

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        self.weight_v = parameter(depth, dim, dim // groups, kernel)
        self.weight_g = parameter(depth, 1, 1, kernel) if weight_norm else None
        self.bias = parameter(depth, dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew from N(0, 4 / (k · dim)), as wav2vec 2.0 does; biases are 0."""
        nn.init.normal_(self.weight_v, std=2 / sqrt(self.kernel * self.dim))
        nn.init.zeros_(self.bias)
        if self.weight_g is not None:
            with torch.no_grad():
                self.weight_g.copy_(_lengths(self.weight_v))

    def weights(self, dtype: Dtype = None) -> Float[Tensor, "depth dim inner kernel"]:
        """The weights of each layer: what was learned, or its direction times its length."""
        wide = working_dtype(self.weight_v.dtype) if dtype is None else dtype
        learned = self.weight_v.to(wide)
        if self.weight_g is None:
            return learned
        return learned * (self.weight_g.to(wide) / _lengths(learned))

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor], prefix: str = "") -> "Convolutional":
        """Load the weights of a model of transformers from its state dict.

        ``prefix`` stands before ``conv.bias`` or ``layers.0.conv.bias``; it is found where there is
        one.
        """
        parts = [f"layers.{n}.conv." for n in range(self.depth)] if self.depth > 1 else ["conv."]
        first = prefix + parts[0] + "bias"
        found = [name.removesuffix(parts[0] + "bias") for name in state if name.endswith(first)]
        if len(found) != 1:
            raise KeyError(f"{len(found)} names end in {first!r}; pass prefix=...")
        theirs = {
            name.removeprefix(found[0]).replace("parametrizations.weight.original0", "weight_g")
            .replace("parametrizations.weight.original1", "weight_v"): weight
            for name, weight in state.items()
            if name.startswith(found[0])
        }  # fmt: skip
        directions = "weight" if self.weight_g is None else "weight_v"
        kinds = {"bias": self.bias, directions: self.weight_v, "weight_g": self.weight_g}
        own = {part + name: each[n] for n, part in enumerate(parts)
               for name, each in kinds.items() if each is not None}  # fmt: skip
        if differ := own.keys() ^ theirs.keys():
            raise ValueError(f"{len(differ)} weights are in one of both alone, as {min(differ)}.")
        for name, weight in theirs.items():
            own[name].copy_(weight)
        return self

    def table(self, positions: WholeRow, *, dtype: Dtype = None) -> Int64[Tensor, "*batch seq one"]:
        """The positions themselves as whole numbers, whatever ``dtype``."""
        return checked(positions).unsqueeze(-1)

    def encode(self, x: Embeddings, table: Int64[Tensor, "*rows seq one"]) -> Embeddings:
        """``x + GELU(conv(x))``, in float32 at least and rounded once.

        Where tokens follow one another, torch convolves; in graphs, call ``ordered`` for that."""
        check_fit("Convolutional", x.shape, (*table.shape[:-1], self.dim))
        positions = table[..., 0]
        follows = positions[..., 1:] == positions[..., :-1] + 1
        if may_look(follows) and bool(follows.all()):
            return self.ordered(x)
        check_repeats("Convolutional", follows, positions[..., 1:] == positions[..., :-1])
        runs = F.pad((~follows).cumsum(-1), (1, 0))[..., : x.shape[-2]]
        return self._layers(x, runs.expand(x.shape[:-1]))

    def ordered(self, x: Embeddings) -> Embeddings:
        """``encode`` where tokens follow one another without padding between them."""
        return self._layers(x, None)

    def _layers(self, x: Tensor, runs: Tensor | None) -> Tensor:
        wide = working_dtype(x.dtype)
        hidden, weights, biases = x.to(wide), self.weights(wide), self.bias.to(wide)
        with without_autocast(x):
            for weight, bias in zip(weights, biases, strict=True):
                if runs is None:
                    hidden = self._convolved(hidden, weight, bias)
                else:
                    hidden = self._summed(hidden, weight, runs) + bias
                if self.layer_norm:
                    hidden = F.layer_norm(hidden, (self.dim,))
                hidden = F.gelu(hidden)
        return (x.to(wide) + hidden).to(x.dtype)

    def _convolved(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if not x.numel():
            return x
        rows = x.reshape(-1, *x.shape[-2:]).mT
        made = F.conv1d(rows, weight, bias, padding=self.kernel // 2, groups=self.groups)
        return made[..., : x.shape[-2]].mT.reshape(x.shape)

    def _summed(self, x: Tensor, weight: Tensor, runs: Tensor) -> Tensor:
        ends = self.kernel // 2, self.kernel - 1 - self.kernel // 2
        grouped = F.pad(x, (0, 0, *ends)).unflatten(-1, (self.groups, -1))
        beside = F.pad(runs, ends, value=NO_RUN)
        blocks = weight.unflatten(0, (self.groups, -1))  # groups, out, in, kernel
        seq, total = x.shape[-2], torch.zeros_like(x).unflatten(-1, (self.groups, -1))
        for tap in range(self.kernel):
            near = beside.narrow(-1, tap, seq) == runs
            part = grouped.narrow(-3, tap, seq).where(near[..., None, None], 0.0)
            total = total + torch.einsum("...gi,goi->...go", part, blocks[..., tap])
        return total.flatten(-2)

    def extra_repr(self) -> str:
        return arguments_told(self, kernel=None, groups=None)


def _lengths(weight: Tensor) -> Tensor:
    """The length of the weights of each o, ``[depth, 1, 1, kernel]``."""
    return weight.norm(dim=(1, 2), keepdim=True)
