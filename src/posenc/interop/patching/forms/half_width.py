"""cos and sin once a pair, half as wide as what is rotated: gpt-oss."""

from torch import Tensor

from posenc.interop.patching.forms.form import Form


def write(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """As they are."""
    return cos, sin


FORM = Form("half width", write)
