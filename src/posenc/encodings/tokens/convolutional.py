"""wav2vec 2.0's convolutional encoding: where a token stands is read off its neighbors."""

from collections.abc import Mapping
from contextlib import nullcontext
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.repeats import check_repeats
from posenc.encodings.tokens.neighbors import check_content
from posenc.guards import may_look
from posenc.positions import Integers, checked

NO_RUN = -1


class Convolutional(TokenEncoding):
    """A wide convolution over the sequence, added to the embeddings.

    y_p = x_p + GELU(b + Σ_o W_o x_{p+o}),  o = −⌊k/2⌋ … ⌈k/2⌉ − 1

    with W_o of shape [dim, dim] in ``groups`` blocks. No position is told in numbers: a token finds
    out where it stands by what is beside it, and by where there is nothing. So its table is no more
    than the positions, and each token depends on k others (``is_pointwise`` is false): a token
    cannot be encoded alone, there is no decoding with a cache, and shards need their neighbors'
    tokens. What positions do say is who is beside whom: tokens that do not follow one another by
    1, as documents in a packed row or a sentence and its padding, are not, and count as nothing, as
    does what lies behind such a break. Padding must stand before or behind a document's tokens, not
    between them, and nowhere one before the first: ``left_padded(mask)`` has it so, and with a
    ``start`` above 0 has not, since there padding stands with the last token of the chunk before.

    wav2vec 2.0, HuBERT, WavLM, UniSpeech and SEW have one such layer whose weights are normalized
    for each o; data2vec has five narrower ones with a layer norm: ``Convolutional(dim, 19,
    depth=5, weight_norm=False, layer_norm=True)``, its layers one after the other inside the GELU.
    With padding they differ from ours from the second layer on, which let it in there.

    Args:
        dim: Width of the embeddings.
        kernel: k, the number of tokens that one depends on; 128 in wav2vec 2.0.
        groups: Blocks of channels that do not see each other; 16.
        depth: Number of layers; each is a convolution, a layer norm if there is one, and a GELU.
        weight_norm: Whether the weight of each o has a length of its own and a direction.
        layer_norm: Whether channels are normalized before the GELU, without parameters.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or ``groups`` does not divide ``dim``.

    Reference:
        Baevski et al. 2020, "wav2vec 2.0", section 2 (arXiv:2006.11477), after Mohamed et al.
        2019, "Transformers with convolutional context for ASR" (arXiv:1904.11660); Baevski et al.
        2022, "data2vec" (arXiv:2202.03555).

    Example:
        >>> encoding = Convolutional(32, kernel=8)
        >>> encoding(torch.randn(2, 50, 32)).shape
        torch.Size([2, 50, 32])
    """

    batch_first = True
    keeps_norm = False
    keeps_shift = False
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(dim=dim, kernel=kernel, groups=groups, depth=depth)
        if dim % groups:
            raise ValueError(f"dim is {dim} and groups {groups}; groups must divide dim.")
        self.dim, self.kernel, self.groups, self.depth = dim, kernel, groups, depth
        self.weight_norm, self.layer_norm = bool(weight_norm), bool(layer_norm)
        factory = {"device": device, "dtype": dtype}
        shape = (depth, dim, dim // groups, kernel)
        self.weight_v = nn.Parameter(torch.empty(shape, **factory))
        sizes = nn.Parameter(torch.empty(depth, 1, 1, kernel, **factory))
        self.weight_g = sizes if self.weight_norm else None
        self.bias = nn.Parameter(torch.empty(depth, dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew from N(0, 4 / (k · dim)), as wav2vec 2.0 does; biases are 0."""
        nn.init.normal_(self.weight_v, std=2 / sqrt(self.kernel * self.dim))
        nn.init.zeros_(self.bias)
        if self.weight_g is not None:
            with torch.no_grad():
                self.weight_g.copy_(_lengths(self.weight_v))

    def weights(self, dtype: torch.dtype | None = None) -> Float[Tensor, "depth dim inner kernel"]:
        """The weights of each layer: what was learned, or its direction times its length.

        They are computed in ``dtype``, or in that of the parameters, float32 at least.
        """
        wide = working_dtype(self.weight_v.dtype) if dtype is None else dtype
        learned = self.weight_v.to(wide)
        if self.weight_g is None:
            return learned
        return learned * (self.weight_g.to(wide) / _lengths(learned))

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor], prefix: str = "") -> "Convolutional":
        """Take over the weights of a model of transformers, as in its state dict.

        Args:
            state: Its tensors by name.
            prefix: What stands before ``conv.bias``, or before ``layers.0.conv.bias``; found by
                itself where there is but one.

        Raises:
            KeyError: Some weight is not there.
            ValueError: It has another shape, or the checkpoint has weights beside these, as those
                of further layers.

        Example:
            >>> theirs = {"conv.bias": torch.ones(8), "conv.weight": torch.ones(8, 4, 3)}
            >>> encoding = Convolutional(8, 3, groups=2, weight_norm=False).load(theirs)
            >>> encoding.bias.tolist()
            [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]
        """
        first = "layers.0.conv.bias" if self.depth > 1 else "conv.bias"
        found = [name for name in state if name.endswith(prefix + first)]
        if len(found) != 1:
            raise KeyError(
                f"The state dict holds {', '.join(found) or 'nothing'} that ends in "
                f"{prefix + first}. Name what stands before it with prefix=..."
            )
        before = found[0][: -len(first)]
        taken: dict[str, Tensor] = {}
        for layer in range(self.depth):
            at = f"{before}layers.{layer}.conv." if self.depth > 1 else f"{before}conv."
            taken |= _named(self.bias[layer], state, [f"{at}bias"])
            names = [f"{at}parametrizations.weight.original", f"{at}weight_"]
            if self.weight_g is None:
                taken |= _named(self.weight_v[layer], state, [f"{at}weight"])
            else:
                taken |= _named(self.weight_g[layer], state, [names[0] + "0", names[1] + "g"])
                taken |= _named(self.weight_v[layer], state, [names[0] + "1", names[1] + "v"])
        _check_whole_taken(state, before, taken)
        for name, own in taken.items():
            own.copy_(state[name])
        return self

    def table(
        self, positions: Int64[Tensor, "*batch seq"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Int64[Tensor, "*batch seq one"]:
        """The positions themselves, whole numbers whatever ``dtype``: they say who is beside whom.

        Raises:
            TypeError: ``positions`` are not integers.
        """
        return checked(positions).unsqueeze(-1)

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Int64[Tensor, "*rows seq one"],
    ) -> Float[Tensor, "*batch seq dim"]:
        """``x + GELU(conv(x))``, in float32 at least and rounded once.

        Where tokens follow one another, in every row, torch convolves; otherwise, and inside
        graphs, which cannot ask, the k products are summed one by one. ``ordered`` is for graphs
        whose tokens are known to follow one another.

        Raises:
            TypeError: ``x`` is not floating.
            ValueError: It has another width, the table is of other tokens, or positions repeat
                between others of one run, as they do where padding lies between tokens.
        """
        check_content(x, table, name="Convolutional", dim=self.dim, coordinates=1)
        positions = table[..., 0]
        follows = positions[..., 1:] == positions[..., :-1] + 1
        if may_look(follows) and bool(follows.all()):
            return self.ordered(x)
        check_repeats("Convolutional", follows, positions[..., 1:] == positions[..., :-1])
        runs = F.pad((~follows).cumsum(-1), (1, 0))[..., : x.shape[-2]]
        return self._layers(x, runs.expand(x.shape[:-1]))

    def ordered(self, x: Float[Tensor, "*batch seq dim"]) -> Float[Tensor, "*batch seq dim"]:
        """``encode`` where tokens follow one another without padding between them.

        Example:
            >>> encoding, x = Convolutional(16, kernel=4), torch.randn(1, 9, 16)
            >>> torch.equal(encoding.ordered(x), encoding(x))
            True
        """
        return self._layers(x, None)

    def _layers(self, x: Tensor, runs: Tensor | None) -> Tensor:
        wide = working_dtype(x.dtype)
        hidden, weights, biases = x.to(wide), self.weights(wide), self.bias.to(wide)
        # Meta tensors know no autocast.
        with nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False):
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
        """Width, kernel and groups, and what is not as in wav2vec 2.0."""
        told = [str(self.dim), f"kernel={self.kernel}", f"groups={self.groups}"]
        usual = {"depth": 1, "weight_norm": True, "layer_norm": False}
        told += [f"{name}={getattr(self, name)}" for name, value in usual.items()
                 if getattr(self, name) != value]  # fmt: skip
        return ", ".join(told)


def _lengths(weight: Tensor) -> Tensor:
    """The length of the weights of each o, ``[depth, 1, 1, kernel]``."""
    return weight.norm(dim=(1, 2), keepdim=True)


def _named(own: Tensor, state: Mapping[str, Tensor], names: list[str]) -> dict[str, Tensor]:
    """``own`` by the first of the names that the state dict knows."""
    known = [name for name in names if name in state]
    if not known:
        raise KeyError(f"The state dict holds no {' and no '.join(names)}.")
    shape = tuple(state[known[0]].shape)
    if shape != own.shape:
        raise ValueError(
            f"{known[0]} has shape {shape}; this encoding has {tuple(own.shape)}. Build it with "
            f"the sizes of the checkpoint."
        )
    return {known[0]: own}


def _check_whole_taken(state: Mapping[str, Tensor], before: str, taken: Mapping[str, Any]) -> None:
    left = [name for name in state if name.startswith(before) and name not in taken]
    if left:
        raise ValueError(
            f"The checkpoint has {', '.join(left[:3])}{' …' if len(left) > 3 else ''} beside what "
            f"this encoding takes. Build it with the depth and the norms of the checkpoint, or "
            f"pass the state dict without these."
        )
