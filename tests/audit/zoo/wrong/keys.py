"""What turns queries rightly, and keys not."""

from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.rotary import Turn


class Exchanged(Turn):
    """Gives keys first."""

    def forward(self, q, k, positions):
        return self.turn(k, positions), self.turn(q, positions)


class KeysAtNarrowPositions(Turn):
    """Positions of keys in the dtype of content."""

    def keys(self, k, positions):
        return self.turn(k, positions.to(k.dtype))


class SortedKeys(Turn):
    """Keys at their positions in order."""

    def keys(self, k, positions):
        return self.turn(k, positions.sort(-1).values)


WRONG = [
    wrong(Exchanged, "keys for queries", "sides-mixed"),
    wrong(KeysAtNarrowPositions, "keys at narrow positions", "positions-in-16-bits"),
    wrong(SortedKeys, "keys in order", "positions-misread"),
]
