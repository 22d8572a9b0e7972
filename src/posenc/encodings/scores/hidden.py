"""The check of what an encoding read in the hidden state."""

from torch import Tensor


def checked_features(
    name: str,
    /,
    width: int,
    scores: Tensor,
    *,
    unread: Tensor | None = None,
    **features: Tensor | None,
) -> None:
    """Refuse features that are missing, of another width, or of other tokens than the scores.

    Args:
        name: The encoding, for the words of an error.
        width: Numbers a token that it reads.
        scores: ``[*batch, heads, q_len, k_len]``.
        unread: What came for the side that it does not read.
        features: ``q_features=...`` or ``k_features=...``: what was read on that side.

    Raises:
        TypeError: They are not floating.
        ValueError: Something does not fit, or would go unread.

    Example:
        >>> import torch
        >>> checked_features("CABLE", 4, torch.zeros(4, 2, 2), k_features=None)
        Traceback (most recent call last):
        ...
        ValueError: CABLE was given no k_features; it reads the hidden state. Pass k_hidden=... to \
the call, or k_features=... to encode.
    """
    if unread is not None:
        side = "q_features" if "k_features" in features else "k_features"
        raise ValueError(
            f"{side} were given, which {name} does not read: it reads {' and '.join(features)}. "
            f"Leave them out."
        )
    for side, read in features.items():
        if read is None:
            raise ValueError(
                f"{name} was given no {side}; it reads the hidden state. Pass {side[0]}_hidden=... "
                f"to the call, or {side}=... to encode."
            )
        if not read.is_floating_point():
            raise TypeError(f"{side} are {read.dtype}; {name} takes floating numbers.")
        if read.shape[-1] != width:
            raise ValueError(
                f"{side} have {read.shape[-1]} numbers a token; {name} reads {width}. Pass what "
                f"its own {'query' if side[0] == 'q' else 'key'}_features gives."
            )
        takes = (*scores.shape[:-3], scores.shape[-2 if side[0] == "q" else -1], width)
        if read.shape != takes:
            raise ValueError(
                f"{side} have shape {tuple(read.shape)} and scores {tuple(scores.shape)}, for "
                f"which {name} takes {takes}. Pass those of the tokens whose scores these are."
            )


def checked_hidden(name: str, dim: int, hidden: Tensor) -> None:
    """Refuse a hidden state of another width, or in whole numbers.

    Raises:
        TypeError: It is not floating.
        ValueError: It is wider or narrower than the encoding was built for.

    Example:
        >>> import torch
        >>> checked_hidden("CABLE", 16, torch.zeros(1, 3, 8))
        Traceback (most recent call last):
        ...
        ValueError: The hidden state has width 8; CABLE was built for dim 16. Build it with dim=8.
    """
    if not hidden.is_floating_point():
        raise TypeError(f"The hidden state is {hidden.dtype}; {name} takes floating numbers.")
    if hidden.shape[-1] != dim:
        raise ValueError(
            f"The hidden state has width {hidden.shape[-1]}; {name} was built for dim {dim}. Build "
            f"it with dim={hidden.shape[-1]}."
        )
