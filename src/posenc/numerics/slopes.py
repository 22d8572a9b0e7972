"""Per-head slopes: how steeply each head's bias falls with distance."""

from math import log2

from posenc.arguments import check_whole


def geometric(heads: int, most: float = 8.0) -> tuple[float, ...]:
    """m_h = 2^(−most · h / heads) for h = 1 … heads.

    Example:
        >>> geometric(4)
        (0.25, 0.0625, 0.015625, 0.00390625)
    """
    check_whole(heads=heads)
    return tuple(2.0 ** (-most * head / heads) for head in range(1, heads + 1))


def alibi(heads: int, most: float = 8.0) -> tuple[float, ...]:
    """The slopes of ALiBi's authors: geometric for a power of two, interleaved for other numbers.

    The paper states the powers of two only. For others the authors' code takes the slopes of the
    next lower power and fills up with every second slope of the power above it. ``most`` is 8 in
    the paper, and ``alibi_bias_max`` in the configurations of MPT.

    Reference:
        Press, Smith & Lewis 2022, "Train Short, Test Long", section 3 (arXiv:2108.12409), and
        ``get_slopes`` in the authors' code.

    Example:
        >>> alibi(3)
        (0.0625, 0.00390625, 0.25)
    """
    check_whole(heads=heads)
    lower = 2 ** int(log2(heads))
    return geometric(lower, most) + geometric(2 * lower, most)[0::2][: heads - lower]
