"""Comparisons of results, with messages that say how far they differ."""

import torch
from torch import Tensor

from posenc.testing.cases import Tensors

ROUNDINGS = {torch.float16: 4, torch.bfloat16: 4, torch.float32: 128}
"""Roundings by which a result may differ from float64; narrow dtypes are computed in float32."""


def assert_same(got: Tensors | Tensor, want: Tensors | Tensor, what: str, *, bitwise: bool) -> None:
    """Assert that two results are equal, bit for bit or within a few roundings."""
    for one, other in _together(got, want):
        form = f"{what}: {one.dtype} {tuple(one.shape)}, not {other.dtype} {tuple(other.shape)}"
        assert (one.shape, one.dtype) == (other.shape, other.dtype), form
        if not one.is_meta:
            rounded = one.is_floating_point() and not bitwise  # whole numbers are not rounded
            assert_near(one, other, 16 * torch.finfo(one.dtype).eps if rounded else 0.0, what)


def assert_rounded(
    got: Tensors | Tensor, want: Tensors | Tensor, dtype: torch.dtype, what: str
) -> None:
    """Assert that results are those in float64, but for some roundings of content in ``dtype``.

    Numbers that ``dtype`` does not hold are compared as its largest.
    """
    info = torch.finfo(dtype)
    for one, other in _together(got, want):
        one, other = (x.double().clamp(-info.max, info.max) for x in (one, other))
        assert_near(one, other, ROUNDINGS[dtype] * info.eps, f"{what}, beside float64")


def assert_near(got: Tensor, want: Tensor, share: float, what: str, least: float = 1.0) -> None:
    """Assert that numbers differ by no more than a share of the largest, or of ``least``."""
    if got.numel():
        got, want = got.double(), want.double()
        far = (got - want).abs().max().item()
        slack = share * max(least, want.abs().max().item())
        assert far <= slack, f"{what}: differs by {far:.3g} (allowed: {slack:.3g})"


def assert_differs(got: Tensors, other: Tensors, what: str) -> None:
    """Assert that two results are not equal bit for bit."""
    same = (a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(got, other, strict=False))
    assert len(got) != len(other) or not all(same), what


def _together(got: Tensors | Tensor, want: Tensors | Tensor) -> list[tuple[Tensor, Tensor]]:
    one, other = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    return list(zip(one, other, strict=True))
