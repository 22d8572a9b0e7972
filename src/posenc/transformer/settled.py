"""Modules whose parts were built with numbers that are settled since."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from posenc.encodings.fixed import check_set
from posenc.encodings.read_by import ReadByArguments


class Settled(ReadByArguments):
    """A module that handed some of its arguments to its parts when it was built.

    To set one of these afterwards would change what it says of itself and nothing that it does.

    Attributes:
        settled: Names of those that it keeps itself.
        handed_on: Names of those that its parts alone keep.
        settable: What is asked of those that can be set, whenever they come.
        constant: Names of those among them that functions of torch take, as numbers that do not
            learn.

    Example:
        >>> from posenc.transformer import MultiHeadAttention
        >>> MultiHeadAttention(16, heads=4).heads = 2
        Traceback (most recent call last):
        ...
        AttributeError: MultiHeadAttention was built with heads 4, as were its parts, which \
setting it to 2 would not change. Build another MultiHeadAttention.
    """

    settled: ClassVar[frozenset[str]] = frozenset()
    handed_on: ClassVar[frozenset[str]] = frozenset()
    settable: ClassVar[Mapping[str, Callable[..., None]]] = {}
    constant: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.handed_on:
            kind = type(self).__name__
            raise AttributeError(
                f"{kind} handed {name} to its parts when it was built, which setting it to "
                f"{value!r} would not change. Set it there, or build another {kind}."
            )
        if name in self.settled and vars(self).get(name, value) is not value:
            kind = type(self).__name__
            raise AttributeError(
                f"{kind} was built with {name} {vars(self)[name]!r}, as were its parts, which "
                f"setting it to {value!r} would not change. Build another {kind}."
            )
        if name in self.settable:
            check_set(self, self.settable[name], name, value, learns=name not in self.constant)
        super().__setattr__(name, value)
