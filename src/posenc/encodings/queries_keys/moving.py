"""Keys that are cached at some positions, moved to others."""

from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.guards import check_dense, working_dtype
from posenc.positions import Coordinates, Positions, checked, placeless
from posenc.positions.placeless import with_places

Moved = Rotary | MultimodalRotary | AxialRotary


def move_keys(
    keys: Float[Tensor, "*batch _ _ head_dim"],
    from_positions: Int64[Tensor, "*rows"] | Positions,
    to_positions: Int64[Tensor, "*rows"] | Positions,
    rotary: Moved,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """Keys that ``rotary`` encoded at some positions, as if it had encoded them at others.

    R(n) k = R(n − m) · R(m) k

    The positions are subtracted as integers, so the turn is exact however far it goes; what is left
    is one more rounding of the keys. The attention factor of a schedule (YaRN's) is in the keys
    already and stays as it is: to encode keys by the difference would put it in twice.

    Only keys are moved. What the tokens saw when they were computed, in deeper layers and in their
    values, stays what it was.

    Args:
        keys: Encoded keys, as a cache holds them.
        from_positions: Where they stand, ``[*batch, seq]``, with several axes ``[…, seq, axes]``.
        to_positions: Where they shall stand.
        rotary: The encoding that made them: partial, in either pairing, by one or several axes.

    Raises:
        TypeError: ``rotary`` is another encoding, or positions are not integers nor coordinates.
        ValueError: It does not compute exactly, there are not as many positions as of the others, a
            position is more than 2^63 from the other, or a token stands nowhere before or after but
            not both.

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
    if not isinstance(rotary, Rotary | MultimodalRotary | AxialRotary):
        raise TypeError(
            f"rotary is a {type(rotary).__name__}; keys of Rotary, MultimodalRotary and "
            f"AxialRotary can be moved."
        )
    inner = rotary.rotary if isinstance(rotary, MultimodalRotary) else rotary
    if inner.arithmetic != "exact":
        raise ValueError(
            f"arithmetic is {inner.arithmetic!r}; its rounded angles do not add up. Move keys of "
            f"an encoding with arithmetic='exact'."
        )
    step = _difference(from_positions, to_positions, rotary)
    check_dense(keys=keys)
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
        raise ValueError(
            f"from_positions have shape {tuple(start.shape)} and to_positions {tuple(end.shape)}; "
            f"give each token one of both."
        )
    if not isinstance(rotary, Rotary):
        start, end = _placed(start, end)
    if isinstance(start, Coordinates) or isinstance(end, Coordinates):
        return Coordinates(end) - Coordinates(start)
    step = end - start
    # A sum of 64 bits runs over exactly if its sign is not that of what it must come from.
    if bool((((end ^ start) & (end ^ step)) < 0).any()):
        raise ValueError(
            "from_positions and to_positions are 2^63 or more apart, which no int64 holds. Move "
            "the keys in two steps."
        )
    return step


def _placed(
    start: Tensor | Coordinates, end: Tensor | Coordinates
) -> tuple[Tensor | Coordinates, Tensor | Coordinates]:
    """Points with those that stand nowhere, before as after, at 0: these are turned by nothing."""
    nowhere, later = placeless(start), placeless(end)
    if bool((nowhere != later).any()):
        raise ValueError(
            "A token stands nowhere before or after, and somewhere else; it was turned or will be, "
            "by no distance. Leave such tokens nowhere in both."
        )
    return with_places(start, nowhere), with_places(end, later)
