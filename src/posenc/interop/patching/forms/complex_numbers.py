"""cos + i sin, one complex number a pair: Llama 4 and DeepSeek-V2."""

import torch
from torch import Tensor

from posenc.interop.patching.forms.form import Form


def write(cos: Tensor, sin: Tensor) -> Tensor:
    """Complex numbers of the precision of ``cos``.

    Example:
        >>> write(torch.tensor([1.0]), torch.tensor([3.0]))
        tensor([1.+3.j])
    """
    return torch.complex(cos, sin)


FORM = Form("complex", write)
