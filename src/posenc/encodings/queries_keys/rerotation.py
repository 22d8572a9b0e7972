"""Keys that are cached under one schedule, rotated further to another."""

from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.frequencies.given import Difference
from posenc.guards import working_dtype
from posenc.numerics.sincos import SinCos
from posenc.positions import Positions

ALIKE = ("head_dim", "rotated_dim", "pairing", "rotated", "heads_first")


def rerotate(
    keys: Float[Tensor, "*batch _ _ head_dim"],
    positions: Int64[Tensor, "*rows seq"] | Positions,
    old: Rotary,
    new: Rotary,
    *,
    out: Tensor | None = None,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """Keys encoded by ``old``, as if ``new`` had encoded them.

    R_new(p) = R_{new − old}(p) · R_old(p)

    The phases are subtracted as integers, so the step is exact at any position; what is left is one
    more rounding of the keys. The attention factor is changed too.

    Args:
        keys: Encoded keys, as a cache holds them.
        positions: Where they stand.
        old: The encoding that made them.
        new: The encoding that they shall have, with other frequencies.
        out: Where to write the result; ``out=keys`` rotates them in place.

    Example:
        >>> import torch
        >>> from posenc.frequencies import Geometric, Linear
        >>> old, new = Rotary(8), Rotary(Linear(Geometric(8), factor=2.0))
        >>> k, positions = torch.randn(1, 2, 3, 8), torch.tensor([7, 100, 2**40])
        >>> cached = old.encode_keys(k, old.table(positions))
        >>> wanted = new.encode_keys(k, new.table(positions))
        >>> torch.allclose(rerotate(cached, positions, old, new), wanted, atol=1e-6)
        True
    """
    differ = [name for name in ALIKE if getattr(old, name) != getattr(new, name)]
    if differ:
        raise ValueError(
            f"{old} and {new} differ in {', '.join(differ)}; only their frequencies may."
        )
    if old.arithmetic != "exact" or new.arithmetic != "exact":
        raise ValueError(
            f"arithmetic is {old.arithmetic!r} and {new.arithmetic!r}; it must be 'exact' for both."
        )
    step, dtype = Difference(new.frequencies, old.frequencies), working_dtype(keys.dtype)
    table = rotation_table(SinCos(step), positions, dtype, step.attention_factor)
    return new.encode_keys(keys, table, out=out)
