"""Comparisons of results, with messages that say how far they differ."""

import torch
from torch import Tensor

from posenc.testing.cases import Tensors

ROUNDINGS = {torch.float16: 4, torch.bfloat16: 4, torch.float32: 128}
"""Roundings by which a result may differ from float64; narrow dtypes are computed in float32."""


def assert_same(got: Tensors | Tensor, want: Tensors | Tensor, what: str, *, bitwise: bool) -> None:
    """Assert that two results are equal, bit for bit or within a few roundings."""
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape, (
            f"{what}: shape {tuple(one.shape)}, not {tuple(other.shape)}"
        )
        assert one.dtype == other.dtype, f"{what}: dtype {one.dtype}, not {other.dtype}"
        if one.numel() == 0 or one.is_meta:
            continue
        far = (one.double() - other.double()).abs().max().item()
        slack = 0.0
        if not bitwise and one.is_floating_point():  # whole numbers are not rounded
            slack = 16 * torch.finfo(one.dtype).eps * max(1.0, other.abs().max().item())
        assert far <= slack, f"{what}: differs by {far:.3g} (allowed: {slack:.3g})"


def assert_rounded(got: Tensor, want: Tensor, dtype: torch.dtype, what: str) -> None:
    """Assert that a result is that in float64, but for some roundings of content in ``dtype``.

    Numbers that ``dtype`` does not hold are compared as its largest.
    """
    most = torch.finfo(dtype).max
    got, want = got.double().clamp(-most, most), want.double().clamp(-most, most)
    far = (got - want).abs().max().item() if got.numel() else 0.0
    slack = ROUNDINGS[dtype] * torch.finfo(dtype).eps * max(1.0, want.abs().max().item())
    assert far <= slack, f"{what}: differs from float64 by {far:.3g} (allowed: {slack:.3g})"


def assert_differs(got: Tensors, other: Tensors, what: str) -> None:
    """Assert that two results are not equal bit for bit."""
    same = len(got) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
        for a, b in zip(got, other, strict=True)
    )
    assert not same, what
