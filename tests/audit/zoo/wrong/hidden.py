"""Slips that near queries of plain content do not show."""

import torch
from tests.audit.zoo.right.rotary import OutsideOfAutocast
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.bias import Alibi, distances
from tests.audit.zoo.wrong.rotary import Turn, halves
from torch import nn


class FarKeysWrap(Turn):
    """The table of keys is shorter than that of queries."""

    def keys(self, k, positions):
        return self.turn(k, positions % 512)


class FarKeysShare(Turn):
    """Positions of keys in bfloat16."""

    def keys(self, k, positions):
        return self.turn(k, positions.bfloat16())


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


class Negated(Part):
    def rest(self, x):
        return -x


class LittleMore(Turn):
    """Lengths grow by a two-thousandth."""

    def turn(self, x, positions):
        return 1.0005 * super().turn(x, positions)


class EightHeads(Turn):
    """Only the first eight heads are turned."""

    def turn(self, x, positions):
        return torch.cat((super().turn(x[:, :8], positions), x[:, 8:]), 1)


class DropsLargeNumbers(Turn):
    def turn(self, x, positions):
        return super().turn(x * (x.abs() < 50), positions)


class HalfContent(Turn):
    """Content goes through float16."""

    def turn(self, x, positions):
        return super().turn(x.half().to(x.dtype), positions)


class OneRow(Turn):
    """One row of the table is that of the next."""

    def places(self, positions):
        return torch.where(positions == 777, 778, positions).double()


class DropsLargeEmbeddings(Sum):
    def forward(self, x):
        return super().forward(x * (x.abs() < 50))


class HalfSum(Sum):
    """Content goes through float16."""

    def forward(self, x):
        return super().forward(x.half().to(x.dtype))


class ScalesGradients(Sum):
    def forward(self, x):
        return super().forward(0.1 * x + 0.9 * x.detach())


class FarQuery(Alibi):
    """One query far down the row sees far keys twice as far away."""

    def forward(self, q_len, k_len):
        queries, keys = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
        made = super().forward(q_len, k_len)
        return torch.where((queries == 300) & (keys < 200), 2 * made, made)


class NearQuery(Alibi):
    """One number of one query is a little off."""

    def forward(self, q_len, k_len):
        queries, away = torch.arange(k_len - q_len, k_len)[:, None], distances(q_len, k_len)
        made = super().forward(q_len, k_len)
        return torch.where((queries == 5) & (away == 2), 1.15 * made, made)


class OneSlope(Alibi):
    """The slope of one head is a third of a percent off."""

    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        made[3] *= 1.003
        return made


class OfScores(Alibi):
    """Adds to scores, which are scaled once more."""

    def handed_on(self, scores):
        return 1.5 * scores

    def forward(self, scores):
        return self.handed_on(scores) + super().forward(*scores.shape[-2:])


class CutScores(OfScores):
    def handed_on(self, scores):
        return scores.detach()


class CappedScores(OfScores):
    def handed_on(self, scores):
        return scores.clamp(-5, 5)


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
    wrong(CappedScores, "clamped scores", "scores-changed"),
    wrong(FarKeysWrap, "far keys wrap", "keys-turned-otherwise"),
    wrong(FarKeysShare, "far keys in bfloat16", "keys-turned-otherwise"),
    wrong(KeysOfTheFirstRow, "keys of the first row", "padding-shifts-positions"),
    wrong(TurnsGradientsOn, "gradients turned on", "gradient-otherwise"),
    wrong(CutsKeys, "detached keys", "gradient-cut"),
    wrong(Part, "the rest halved", "rest-changed"),
    wrong(Negated, "the rest negated", "rest-changed"),
    wrong(LittleMore, "times 1.0005", "table-scaled"),
    wrong(EightHeads, "eight heads alone", "depends-on-how-it-is-given"),
    wrong(DropsLargeNumbers, "large numbers dropped", "depends-on-how-it-is-given"),
    wrong(HalfContent, "content in float16", "depends-on-how-it-is-given"),
    wrong(OneRow, "one row of the table", "positions-shared"),
    wrong(DropsLargeEmbeddings, "large embeddings dropped", "depends-on-how-it-is-given"),
    wrong(HalfSum, "content of a sum in float16", "depends-on-how-it-is-given"),
    wrong(ScalesGradients, "scaled gradients", "gradient-otherwise"),
    wrong(FarQuery, "one far query", "depends-on-absolute-positions"),
    wrong(NearQuery, "one near query", "depends-on-absolute-positions"),
    wrong(OneSlope, "one slope", "wrong-slopes"),
    wrong(WithinAutocast, "angles within autocast", "autocast-breaks-it"),
    wrong(SumWithinAutocast, "a sum within autocast", "autocast-breaks-it"),
]
