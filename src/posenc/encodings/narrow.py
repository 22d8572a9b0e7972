"""Tables in float16, whose numbers end at 65504: one that has become infinite is refused."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from posenc.guards import captured, may_look


def held_to_float16(method: Callable[..., Any]) -> Callable[..., Any]:
    """``table`` or ``profile``, which refuses what float16 has made infinite; unless none may look.

    An infinity that float32 holds too is meant, as of a bias that hides pairs.

    Raises:
        ValueError: By that method: a number is beyond the largest of float16.

    Example:
        >>> from posenc import ALiBi
        >>> ALiBi(1, slopes=(0.5,)).table([200_000], [0], dtype=torch.float16)
        Traceback (most recent call last):
        ...
        ValueError: A number in what table of ALiBi gives is beyond 65504, the largest number of \
float16. Ask for float32, which content in float16 takes as well.
    """

    @wraps(method)
    def held(self: Any, *positions: Any, **named: Any) -> Any:
        made = method(self, *positions, **named)
        if named.get("dtype") is torch.float16 and _is_infinite(made):
            wide = method(self, *positions, **{**named, "dtype": torch.float32})
            if bool((made.isinf() & ~wide.isinf()).any()):
                raise ValueError(
                    f"A number in what {method.__name__} of {type(self).__name__} gives is beyond "
                    f"65504, the largest number of float16. Ask for float32, which content in "
                    f"float16 takes as well."
                )
        return made

    return held


def _is_infinite(made: Any) -> bool:
    """Whether an infinity is seen; whole numbers, and what is no tensor, hold none."""
    if not isinstance(made, Tensor) or made.dtype is not torch.float16:
        return False
    return may_look(made) and not captured(made) and bool(made.isinf().any())
