"""What encodings share that read the tokens beside each token."""

from torch import Tensor

from posenc.guards import check_dense


def check_content(x: Tensor, table: Tensor, *, name: str, dim: int, coordinates: int) -> None:
    """Refuse content that is not that of a table of positions, ``[*rows, seq, coordinates]``.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: It has another width, or the table is of other tokens.

    Example:
        >>> import torch
        >>> check_content(torch.ones(3, 8), torch.ones(3, 2), name="PEG", dim=6, coordinates=2)
        Traceback (most recent call last):
        ...
        ValueError: x has width 8; PEG was built for dim 6. Build it with dim=8.
    """
    check_dense(x=x)
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; {name} takes floating embeddings [*batch, seq, dim].")
    if x.shape[-1] != dim:
        raise ValueError(
            f"x has width {x.shape[-1]}; {name} was built for dim {dim}. Build it with "
            f"dim={x.shape[-1]}."
        )
    if table.shape[-1:] != (coordinates,):
        raise ValueError(
            f"The table has shape {tuple(table.shape)}; that of {name} holds positions of "
            f"{coordinates} coordinates, [*rows, seq, {coordinates}]. Give it its own table."
        )
    rows, tokens = table.shape[:-1][::-1], x.shape[:-1][::-1]
    fits = rows[:1] == tokens[:1] and len(rows) <= len(tokens)
    if not fits or any(r not in (1, t) for r, t in zip(rows, tokens, strict=False)):
        raise ValueError(
            f"x has shape {tuple(x.shape)} and the table {tuple(table.shape)}. Pass one position a "
            f"token, for all rows of x or as many rows as x has."
        )
