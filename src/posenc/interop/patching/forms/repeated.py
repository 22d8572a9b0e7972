"""cos and sin with every value twice in a row: Cohere."""

from torch import Tensor

from posenc.interop.patching.forms.form import Form


def write(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """One value a channel; channels 2i and 2i + 1 have the same.

    Example:
        >>> import torch
        >>> write(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))[0]
        tensor([1., 1., 2., 2.])
    """
    return cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)


FORM = Form("repeated", write)
