"""KERPLE: biases from conditionally positive definite kernels, with two learned numbers a head."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.encodings.base import RelativeBias
from posenc.positions import checked

Kernel = Literal["log", "power"]

LEAST, MOST = 0.01, 2.0  # of the parameters, as the authors clamp them


class KERPLE(RelativeBias):
    """A penalty that grows with the logarithm, or with a power, of the distance.

    log: −p_h · ln(1 + a_h · d),   power: −a_h · d^(p_h)

    with d = max(q − k, 0): keys after their query are for the causal mask to hide. Both numbers
    are held at 0.01 or more, and the power at 2 or less, where the kernel stays conditionally
    positive definite. A number beyond a bound counts as the bound and still gets the gradient
    there, as in the authors' code, so that it can come back.

    Args:
        heads: Number of query heads.
        kernel: ``"log"``, which extrapolates better, or ``"power"``.

    Raises:
        ValueError: ``heads`` is not positive, or ``kernel`` has no such name.

    Reference:
        Chi et al. 2022, "KERPLE", logarithmic and power kernels (arXiv:2205.09921); the bounds are
        those of the authors' code.

    Example:
        >>> kerple = KERPLE(heads=1)
        >>> _ = nn.init.ones_(kerple.p), nn.init.ones_(kerple.a)
        >>> kerple.profile(torch.tensor([0, 1, 3])).detach()
        tensor([[-0.0000, -0.6931, -1.3863]])
    """

    def __init__(self, heads: int, kernel: Kernel = "log"):
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads is {heads}; it must be 1 or more.")
        if kernel not in get_args(Kernel):
            raise ValueError(f"kernel is {kernel!r}; it must be 'log' or 'power'.")
        self.heads = heads
        self.kernel: Kernel = kernel
        self.p, self.a = nn.Parameter(torch.empty(heads)), nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw p anew from U(0, 2) and a from U(0, 1)."""
        nn.init.uniform_(self.p, 0.0, 2.0)
        nn.init.uniform_(self.a, 0.0, 1.0)

    def profile(
        self, distance: Int64[Tensor, "*shape"], *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The kernel of each head at each distance."""
        dtype = dtype or torch.float32
        away = checked(distance, "distance").clamp(min=0).to(dtype)
        each = (-1, *[1] * away.ndim)
        a = _held(self.a.to(dtype), None).view(each)
        p = _held(self.p.to(dtype), MOST if self.kernel == "power" else None).view(each)
        if self.kernel == "log":
            return -p * torch.log1p(a * away)
        # d^p has no slope in p at 0; log(1) there gives the same 0 and a finite gradient.
        power = torch.exp(p * away.clamp(min=1).log())
        return -a * torch.where(away > 0, power, 0.0)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"heads={self.heads}, kernel={self.kernel!r}"


def _held(number: Tensor, most: float | None) -> Tensor:
    """``number`` within its bounds, with the gradient of a bound for what lies beyond it."""
    return number.clamp(LEAST, most).detach() + (number - number.detach())
