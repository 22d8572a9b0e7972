"""What public code adds to scores and hides with one tensor, in its usual styles."""

from tests.audit.zoo.right.bias import WholeWindow, alibi, apart, of_square
from tests.audit.zoo.specimen import right


class ShiftedWindow(WholeWindow):
    """Swin's shifted window, whose last rows and columns come from another side of the image."""

    hides = -100.0

    def forward(self, q_len, k_len):
        points = of_square(5)
        region = (points >= 3)[:, 0] * 2 + (points >= 3)[:, 1]
        other = region[:, None] != region
        return super().forward(q_len, k_len).masked_fill(other, self.hides)


class ShiftedWindowAtInfinity(ShiftedWindow):
    hides = float("-inf")


def hiding(q_len, k_len, away, low=float("-inf")):
    return alibi(q_len, k_len).masked_fill(away, low)


def others_alone(q_len, k_len):
    """Every key but a query's own."""
    return hiding(q_len, k_len, apart(q_len, k_len) == 0)


RIGHT = [
    right(ShiftedWindow, "a learned bias of 5 × 5 tokens"),
    right(ShiftedWindowAtInfinity, "a learned bias"),
    right(others_alone, ""),
]
