"""What a bias claims by the biases that it is made of."""

from posenc.encodings.base import ScoreBias, ScoreEncoding


def take_claims(holder: ScoreEncoding, *parts: ScoreBias) -> None:
    """Claim of ``holder``, which adds tables of ``parts``, what these claim of themselves.

    Raises:
        ValueError: One of them changes the output of attention, which no table can.

    Example:
        >>> from posenc import ALiBi, Cyclic
        >>> bias = ALiBi(2)
        >>> bias.reads_later = True  # as that of a class of one's own may
        >>> Cyclic(2, bias, 5).reads_later
        True
    """
    for part in parts:
        if part.changes_output:
            raise ValueError(
                f"{type(part).__name__} changes the output of attention (changes_output), and "
                f"{type(holder).__name__} takes of it what it adds to scores alone. Pass it by "
                f"itself in scores=."
            )
        holder.is_pairwise = holder.is_pairwise and part.is_pairwise
        for name in ("reads_neighbors", "reads_later"):
            if getattr(part, name, False):
                setattr(holder, name, True)
