"""Slips that stand in training alone, and rows that are cut where nobody looks."""

from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.bias import Alibi


class CutInTraining(Sum):
    def forward(self, x):
        return super().forward(x.detach() if self.training else x)


class SteeperInTraining(Alibi):
    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        return 1.5 * made if self.training else made


WRONG = [
    wrong(CutInTraining, "cut in training", "gradient-cut"),
    wrong(SteeperInTraining, "steeper in training", "depends-on-how-it-is-given"),
]
