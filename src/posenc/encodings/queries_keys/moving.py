"""Keys in a cache, moved to other positions or to another schedule."""

from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary, check_alike
from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.encodings.shapes import Heads
from posenc.frequencies.given import Difference
from posenc.guards import working_dtype
from posenc.numerics.sincos import SinCos
from posenc.positions import Coordinates, Positions, checked, placeless
from posenc.positions.placeless import with_places

Moved = Rotary | MultimodalRotary | AxialRotary


def move_keys(
    keys: Heads,
    from_positions: Int64[Tensor, "*rows"] | Positions,
    to_positions: Int64[Tensor, "*rows"] | Positions,
    rotary: Moved,
) -> Heads:
    """Keys that ``rotary`` encoded at some positions, as if it had encoded them at others.

    R(n) k = R(n − m) · R(m) k

    Positions are subtracted as integers, so the turn is exact; what is left is one more rounding of
    the keys. The attention factor of a schedule is in the keys already and stays.

    Args:
        from_positions: Where they stand, ``[*batch, seq]``, with several axes ``[…, seq, axes]``.
        rotary: The encoding that made them: partial, in either pairing, by one or several axes.

    Reference:
        Su et al. 2021, "RoFormer", equation 16: R(m)ᵀR(n) = R(n − m) (arXiv:2104.09864).

    Example:
        >>> import torch
        >>> rotary, k = Rotary(8), torch.randn(1, 2, 3, 8)
        >>> here, there = torch.tensor([7, 8, 9]), torch.tensor([0, 1, 2**40])
        >>> cached = rotary.encode_keys(k, rotary.table(here))
        >>> wanted = rotary.encode_keys(k, rotary.table(there))
        >>> torch.allclose(move_keys(cached, here, there, rotary), wanted, atol=1e-6)
        True
    """
    inner = rotary.rotary if isinstance(rotary, MultimodalRotary) else rotary
    if inner.arithmetic != "exact":
        raise ValueError(f"arithmetic is {inner.arithmetic!r}; it must be 'exact'.")
    step = _difference(from_positions, to_positions, rotary)
    dtype = working_dtype(keys.dtype)
    if isinstance(rotary, Rotary):
        table = rotation_table(rotary.sincos, step, dtype)
    else:
        table = rotary.sincos.table(step, dtype, scaled=False)
    return rotary.encode_keys(keys, table)


def _difference(
    start: Tensor | Positions, end: Tensor | Positions, rotary: Moved
) -> Tensor | Coordinates:
    start, end = checked(start, reals=True), checked(end, reals=True)
    axes = 1 if isinstance(rotary, Rotary) else 2
    if start.shape[-axes:] != end.shape[-axes:]:
        shapes = f"{tuple(start.shape)} and to_positions {tuple(end.shape)}"
        raise ValueError(f"from_positions have shape {shapes}; both must have one a token.")
    if not isinstance(rotary, Rotary):
        nowhere, later = placeless(start), placeless(end)
        if bool((nowhere != later).any()):
            raise ValueError("A token stands nowhere in one of both; it must in both or in none.")
        start, end = with_places(start, nowhere), with_places(end, later)
    if isinstance(start, Coordinates) or isinstance(end, Coordinates):
        return Coordinates(end) - Coordinates(start)
    return end - start


def rerotate(
    keys: Heads,
    positions: Int64[Tensor, "*rows seq"] | Positions,
    old: Rotary,
    new: Rotary,
    *,
    out: Tensor | None = None,
) -> Heads:
    """Keys encoded by ``old``, as if ``new`` had encoded them.

    R_new(p) = R_{new − old}(p) · R_old(p)

    Phases are subtracted as integers, so the step is exact; what is left is one more rounding of
    the keys. The attention factor is changed too.

    Args:
        new: The encoding that they shall have, with other frequencies.
        out: Where to write the result; ``out=keys`` rotates them in place.

    Example:
        >>> import torch
        >>> old, new = Rotary(8), Rotary(8, base=1e6)
        >>> k, positions = torch.randn(1, 2, 3, 8), torch.tensor([7, 100, 2**40])
        >>> cached = old.encode_keys(k, old.table(positions))
        >>> wanted = new.encode_keys(k, new.table(positions))
        >>> torch.allclose(rerotate(cached, positions, old, new), wanted, atol=1e-6)
        True
    """
    check_alike(old, new)
    if old.arithmetic != "exact" or new.arithmetic != "exact":
        raise ValueError(f"arithmetic is {old.arithmetic!r} and {new.arithmetic!r}; not 'exact'.")
    step, dtype = Difference(new.frequencies, old.frequencies), working_dtype(keys.dtype)
    table = rotation_table(SinCos(step), positions, dtype, step.attention_factor)
    return new.encode_keys(keys, table, out=out)
