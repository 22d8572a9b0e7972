"""The orders of axes in which embeddings are kept, those of images among them."""

from torch import Tensor

from posenc.audit.report import CallFailedError, FewerRowsError

LAYOUTS = ("bsd", "sbd", "sd", "bhwd", "bdhw")
"""b batch, s sequence, d width of an embedding, h and w height and width of a grid."""

SAID = {
    "bsd": "[batch, seq, dim]",
    "sbd": "[seq, batch, dim]",
    "sd": "[seq, dim]",
    "bhwd": "[batch, height, width, dim]",
    "bdhw": "[batch, dim, height, width]",
}


def laid_out(x: Tensor, layout: str, grid: tuple[int, int]) -> Tensor:
    """``[batch, seq, dim]`` in another order of axes."""
    if layout == "sbd":
        return x.transpose(0, 1).contiguous()
    if layout == "sd":
        return x[0]
    if layout == "bhwd":
        return x.reshape(len(x), *grid, -1)
    if layout == "bdhw":
        return x.reshape(len(x), *grid, -1).permute(0, 3, 1, 2).contiguous()
    return x


def taken_back(made: Tensor, layout: str, seq: int, dim: int) -> Tensor:
    """What came in that order as ``[batch, seq, dim]`` again; a table gets the axes it lacks.

    Raises:
        CallFailedError: Its shape is none that can be added to such embeddings.
        FewerRowsError: It has fewer rows than there are tokens.
    """
    shape = tuple(made.shape)
    if layout == "bdhw" and made.ndim == 4 and shape[1] == dim:
        made = made.permute(0, 2, 3, 1)
    if layout == "sbd" and made.ndim == 3:
        made = made.transpose(0, 1)
    if made.ndim == 2:
        made = made[None]
    if made.shape == (seq, 1, dim) and layout == "sd":
        made = made.transpose(0, 1)
    if made.ndim == 4 and 1 in made.shape[:3] and layout not in ("bhwd", "bdhw"):
        made = made.reshape(1, -1, shape[-1]) if made.numel() == seq * dim else made
    if made.ndim == 4:
        made = made.reshape(len(made), -1, made.shape[-1])
    if made.ndim != 3 or made.shape[-1] != dim or made.shape[1] != seq:
        if made.ndim == 3 and made.shape[-1] == dim and made.shape[1] < seq:
            raise FewerRowsError(f"for {seq} tokens {made.shape[1]} rows come back")
        raise CallFailedError(f"it gives the shape {shape}")
    return made
