"""Reversed addition: digits from the lowest on, with or without coupled positions."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from posenc.lab.tasks.base import Batch, Task, draw, unscored

PLUS, EQUALS = 10, 11


@dataclass(frozen=True)
class ReversedAddition(Task):
    """ "a + b =" and the sum, lowest digit first; right where every digit is.

    The length counts the digits of a and of b. With ``coupled`` positions, digits of the same
    weight stand at the same position in a, b and the sum, and a row begins anywhere, so that the
    positions of longer rows are trained too.

    Args:
        coupled: Whether positions are coupled; else they count tokens.

    Reference:
        Cho et al. 2024, "Position Coupling" (arXiv:2405.20671), section 4.
    """

    trained: int = 8
    tested: tuple[int, ...] = (8, 12, 16)
    coupled: bool = False

    about = "The sum of two numbers, lowest digit first; right where all of it is."
    vocabulary = 12
    measure = "exact match"
    is_exact = True
    chance = 0.0
    steps = 3000
    shortest = 1

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows with two numbers of ``length`` digits, and their sum of length + 1."""
        a, b = draw(generator, 10, 2, batch, length)
        total = _added(a, b)
        plus, equals = torch.full((batch, 1), PLUS), torch.full((batch, 1), EQUALS)
        tokens = torch.cat((a, plus, b, equals, total[:, :-1]), 1)
        targets = unscored(tokens)
        targets[:, 2 * length + 1 :] = total
        return Batch(tokens, targets, self._positions(generator, length, batch))

    def _positions(self, generator: Generator, length: int, batch: int) -> Tensor | None:
        if not self.coupled:
            return None
        digits = torch.arange(length)
        # "=" predicts the lowest digit and stands before it; "+" stands behind the highest one.
        row = torch.cat((digits, torch.tensor([length]), digits, torch.tensor([-1]), digits))
        start = 1 + draw(generator, self.places - length - 1, batch, 1)
        return start + row

    def tokens(self, length: int) -> int:
        """Both numbers, two signs, and all digits of the sum but the last."""
        return 3 * length + 2


def _added(a: Tensor, b: Tensor) -> Tensor:
    """Digits of a + b from the lowest on, one more than either has.

    Example:
        >>> _added(torch.tensor([[5, 9]]), torch.tensor([[7, 0]]))  # 95 + 7 = 102
        tensor([[2, 0, 1]])
    """
    carry, digits = torch.zeros_like(a[:, 0]), []
    for each, other in zip(a.unbind(1), b.unbind(1), strict=True):
        both = each + other + carry
        digits.append(both % 10)
        carry = both // 10
    return torch.stack((*digits, carry), 1)
