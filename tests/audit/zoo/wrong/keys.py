"""What turns queries rightly, and keys not."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.rotary import Turn, halves


class HalvesOfQueries(Turn):
    """Rotates half of the queries where half of the keys is meant."""

    def forward(self, q, k, positions):
        cos, sin = self.waveform(positions)
        keys = k * cos + halves(q[:, : k.shape[1]]) * sin
        return self.turn(q, positions), keys.to(k.dtype)


class Exchanged(Turn):
    """Gives keys first."""

    def forward(self, q, k, positions):
        return self.turn(k, positions), self.turn(q, positions)


class QueriesTwice(Turn):
    """Gives the queries for the keys."""

    def forward(self, q, k, positions):
        return self.turn(q, positions), self.turn(q[:, : k.shape[1]], positions)


class RestOfQueries(Turn):
    """Half of the channels turn; what does not is joined from the queries."""

    def turn(self, x, positions):
        return super().turn(x[..., : self.dim], positions)

    def forward(self, q, k, positions):
        rest = q[..., self.dim :]
        made = (self.turn(x, positions) for x in (q, k))
        return tuple(torch.cat((x, rest[:, : x.shape[1]]), -1) for x in made)


class CastKeys(Turn):
    """Keys through bfloat16."""

    def keys(self, k, positions):
        return self.turn(k.bfloat16().to(k.dtype), positions)


class KeysAtNarrowPositions(Turn):
    """Positions of keys in the dtype of content."""

    def keys(self, k, positions):
        return self.turn(k, positions.to(k.dtype))


class SortedKeys(Turn):
    """Keys at their positions in order."""

    def keys(self, k, positions):
        return self.turn(k, positions.sort(-1).values)


class BackwardsInTraining(Turn):
    """Keys the other way around while training."""

    def keys(self, k, positions):
        return self.turn(k, -positions if self.training else positions)


class EightHeads(Turn):
    """Keys of the ninth head on come out as they went in."""

    def keys(self, k, positions):
        return torch.cat((self.turn(k[:, :8], positions), k[:, 8:]), 1)


class CutKeys(Turn):
    """Keys no larger than two."""

    def keys(self, k, positions):
        return self.turn(k.clamp(-2, 2), positions)


OTHERWISE = "depends-on-how-it-is-given"
WRONG = [
    wrong(HalvesOfQueries, "halves of queries", "sides-mixed"),
    wrong(Exchanged, "keys for queries", "sides-mixed"),
    wrong(QueriesTwice, "queries twice", "sides-mixed"),
    wrong(RestOfQueries, "the rest of the queries", "sides-mixed", dim=64),
    wrong(CastKeys, "keys through bfloat16", OTHERWISE),
    wrong(KeysAtNarrowPositions, "keys at narrow positions", "positions-in-16-bits"),
    wrong(SortedKeys, "keys in order", "positions-misread"),
    wrong(BackwardsInTraining, "keys backwards in training", OTHERWISE),
    wrong(EightHeads, "keys of eight heads", OTHERWISE),
    wrong(CutKeys, "keys that are cut", OTHERWISE),
]
