"""Slips that stand in training alone, and rows that are cut where nobody looks."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.bias import Alibi
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn


class LateInTraining(Sum):
    """One position late, beside a dropout."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        begin = int(self.training)
        return self.dropout(x + self.pe[begin : begin + x.shape[1]].to(x.dtype))


class ScaledOutOfTraining(Sum):
    """Content is multiplied where a model is asked, and not where it learns."""

    def forward(self, x):
        return super().forward(x if self.training else 8 * x)


class CutInTraining(Sum):
    def forward(self, x):
        return super().forward(x.detach() if self.training else x)


class TurnsMoreInTraining(Turn):
    def places(self, positions):
        return super().places(positions) * (1.5 if self.training else 1.0)


class SteeperInTraining(Alibi):
    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        return 1.5 * made if self.training else made


class HalfScoresInTraining(Alibi):
    """Of scores that come, half are left."""

    def forward(self, scores):
        made = scores + super().forward(*scores.shape[-2:]).to(scores.dtype)
        return made / 2 if self.training else made


class PrefillsInPieces(Turn):
    """Long rows come in pieces of 64, whose positions begin anew."""

    def forward(self, q, k, start_pos=0):
        made = []
        for x in (q, k):
            pieces = [
                self.turn(piece, (start_pos + torch.arange(piece.shape[2])).expand(len(x), -1))
                for piece in x.split(64, 2)
            ]
            made.append(torch.cat(pieces, 2))
        return tuple(made)


WRONG = [
    wrong(LateInTraining, "late in training", "depends-on-how-it-is-given"),
    wrong(ScaledOutOfTraining, "scaled out of training", "depends-on-how-it-is-given"),
    wrong(CutInTraining, "cut in training", "gradient-cut"),
    wrong(TurnsMoreInTraining, "turns more in training", "depends-on-how-it-is-given"),
    wrong(SteeperInTraining, "steeper in training", "depends-on-how-it-is-given"),
    wrong(HalfScoresInTraining, "half scores in training", "depends-on-how-it-is-given"),
    wrong(PrefillsInPieces, "rows in pieces", "decoding-differs-from-prefill"),
]
