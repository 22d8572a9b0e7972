"""sin and then cos in one row: the tables that GPT-J and CodeGen keep in their attention."""

import torch
from torch import Tensor

from posenc.interop.patching.forms.form import Form


def write(cos: Tensor, sin: Tensor) -> Tensor:
    """One row a position, of the rotated width.

    Example:
        >>> write(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([3., 4., 1., 2.])
    """
    return torch.cat((sin, cos), dim=-1)


FORM = Form("rows of a table", write)
