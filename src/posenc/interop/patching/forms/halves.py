"""cos and sin for both halves of the rotated width: Llama and most other models."""

import torch
from torch import Tensor

from posenc.interop.patching.forms.form import Form


def write(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """One value a channel; channels i and i + width/2 have the same.

    Example:
        >>> write(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))[0]
        tensor([1., 2., 1., 2.])
    """
    return torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)


FORM = Form("both halves", write)
