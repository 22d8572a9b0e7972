"""Slips that near queries of plain content do not show."""

import torch
from tests.audit.zoo.right.rotary import OutsideOfAutocast
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.bias import Alibi
from tests.audit.zoo.wrong.rotary import Turn, halves
from torch import nn


class FarKeysWrap(Turn):
    """The table of keys is shorter than that of queries."""

    def keys(self, k, positions):
        return self.turn(k, positions % 512)


class KeysOfTheFirstRow(Turn):
    def keys(self, k, positions):
        return self.turn(k, positions[:1].expand(len(k), -1))


class Backward(torch.autograd.Function):
    """Turns gradients as it turned content, where the transpose turns back."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return (x * cos + halves(x) * sin).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        return (gradient * cos + halves(gradient) * sin).to(gradient.dtype), None, None


class TurnsGradientsOn(Turn):
    def turn(self, x, positions):
        return Backward.apply(x, *self.waveform(positions))


class CutsKeys(Turn):
    def keys(self, k, positions):
        return self.turn(k.detach(), positions)


class Part(Turn):
    """Turns the first half of the channels, and does something to the rest."""

    def rates(self):
        return super().rates()[::2]

    def rest(self, x):
        return 0.5 * x

    def turn(self, x, positions):
        return torch.cat((super().turn(x[..., :16], positions), self.rest(x[..., 16:])), -1)


class LittleMore(Turn):
    """Lengths grow by a two-thousandth."""

    def turn(self, x, positions):
        return 1.0005 * super().turn(x, positions)


class DropsLargeNumbers(Turn):
    def turn(self, x, positions):
        return super().turn(x * (x.abs() < 50), positions)


class DropsLargeEmbeddings(Sum):
    def forward(self, x):
        return super().forward(x * (x.abs() < 50))


class ScalesGradients(Sum):
    def forward(self, x):
        return super().forward(0.1 * x + 0.9 * x.detach())


class OfScores(Alibi):
    """Adds to scores, which are scaled once more."""

    def handed_on(self, scores):
        return 1.5 * scores

    def forward(self, scores):
        return self.handed_on(scores) + super().forward(*scores.shape[-2:])


class CutScores(OfScores):
    def handed_on(self, scores):
        return scores.detach()


class WithinAutocast(OutsideOfAutocast):
    """Autocast rounds positions and frequencies to bfloat16."""

    within = True


class SumWithinAutocast(nn.Module):
    """The same of the paper's sum."""

    def forward(self, x):
        """x: [batch, seq, dim]"""
        rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angles = torch.arange(x.shape[1]).float()[:, None] @ rates[None]
        return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).to(x.dtype)


WRONG = [
    wrong(OfScores, "scaled scores", "scores-changed"),
    wrong(CutScores, "detached scores", "gradient-cut"),
    wrong(FarKeysWrap, "far keys wrap", "keys-turned-otherwise"),
    wrong(KeysOfTheFirstRow, "keys of the first row", "padding-shifts-positions"),
    wrong(TurnsGradientsOn, "gradients turned on", "gradient-otherwise"),
    wrong(CutsKeys, "detached keys", "gradient-cut"),
    wrong(Part, "the rest halved", "rest-changed"),
    wrong(LittleMore, "times 1.0005", "table-scaled"),
    wrong(DropsLargeNumbers, "large numbers dropped", "depends-on-how-it-is-given"),
    wrong(DropsLargeEmbeddings, "large embeddings dropped", "depends-on-how-it-is-given"),
    wrong(ScalesGradients, "scaled gradients", "gradient-otherwise"),
    wrong(WithinAutocast, "angles within autocast", "autocast-breaks-it"),
    wrong(SumWithinAutocast, "a sum within autocast", "autocast-breaks-it"),
]
