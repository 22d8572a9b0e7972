"""Encodings of a class of somebody's own, where fields alone would stand for them."""

READ = (
    *("table", "profile", "encode", "encode_queries", "encode_keys", "encode_values"),
    "encode_output",
)
"""The methods by which an encoding may differ from what its fields say."""


def refuse_changed(owner: str, encoding: object) -> None:
    """Refuse an encoding whose class has other methods than ours, which ``owner`` would not call.

    Raises:
        TypeError: It has one.

    Example:
        >>> from posenc import Rotary
        >>> class Turned(Rotary):
        ...     __module__ = "somebodys"
        ...     def encode_keys(self, k, table):
        ...         return super().encode_keys(k.flip(-1), table)
        >>> refuse_changed("move_keys", Rotary(8))
        >>> refuse_changed("move_keys", Turned(8))
        Traceback (most recent call last):
        ...
        TypeError: Turned defines encode_keys, and move_keys reads frequencies and layout alone, \
by which Turned is taken for a Rotary. Pass a Rotary, or do it by the methods of Turned.
    """
    kinds = type(encoding).__mro__
    ours = next((kind for kind in kinds if kind.__module__.startswith("posenc.")), object)
    own = kinds[: kinds.index(ours)]
    for name in READ:
        for kind in own:
            if name in vars(kind):
                raise TypeError(
                    f"{kind.__name__} defines {name}, and {owner} reads frequencies and layout "
                    f"alone, by which {type(encoding).__name__} is taken for a {ours.__name__}. "
                    f"Pass a {ours.__name__}, or do it by the methods of {kind.__name__}."
                )
