"""Each task against a solver that was written from its description, one row at a time."""

import pytest
import torch
from torch.nn import functional

from posenc.lab import ModelSize
from posenc.lab.encodings import drawn as encodings
from posenc.lab.tasks import TASKS, Batch, Task
from posenc.lab.tasks.base import IGNORED, loss
from posenc.lab.tasks.language import FAR, NEAR, corpus
from posenc.lab.tasks.recall import MARK
from posenc.lab.tasks.sequences import BEGIN, EQUALS, PLUS, STOP
from posenc.lab.training import Model, examined, generator_for


def word_order(row: list[int], _: Task) -> list[int]:
    return [int(row.index(1) < row.index(2))] + [IGNORED] * (len(row) - 1)


def local_language_model(row: list[int], _: Task) -> list[int]:
    known = [(NEAR[row[t]] + FAR[row[t - 2]]) % 16 for t in range(2, len(row))]
    assert known[:-1] == row[3:]
    return [IGNORED] * 2 + known


def flip_flop(row: list[int], _: Task) -> list[int]:
    answers, written = [], None
    for do, bit in zip(row[::2], row[1::2], strict=True):
        written = bit if do == 2 else written
        answers += [written if do == 3 else IGNORED, IGNORED]
        assert do != 3 or bit == written
    assert (row[0], row[-2]) == (2, 3)
    return answers


def k_back(row: list[int], task: Task) -> list[int]:
    answers = []
    for end in range(1, len(row) + 1):
        letters = [each for each in row[:end] if each < 8]
        answers.append(letters[-task.k] if len(letters) >= task.k else IGNORED)
    return answers


def k_front(row: list[int], task: Task) -> list[int]:
    return [IGNORED if t < task.k - 1 else row[task.k - 1] for t in range(len(row))]


def passkey(row: list[int], _: Task) -> list[int]:
    assert row.count(MARK) == 1
    return [IGNORED] * (len(row) - 1) + [row[row.index(MARK) + 1]]


def copy(row: list[int], _: Task) -> list[int]:
    middle = row.index(16)
    assert row[middle + 1 :] == row[: middle - 1]
    return [IGNORED] * middle + row[:middle]


def counting(row: list[int], _: Task) -> list[int]:
    first, last = row[:2]
    assert row[2:] == [BEGIN, *range(first, last + 1)]
    return [IGNORED] * 2 + [*range(first, last + 1), STOP]


def reversed_addition(row: list[int], _: Task) -> list[int]:
    plus, equals = row.index(PLUS), row.index(EQUALS)
    a, b = (int("".join(map(str, reversed(each)))) for each in (row[:plus], row[plus + 1 : equals]))
    digits = [int(digit) for digit in reversed(str(a + b).zfill(plus + 1))]
    assert row[equals + 1 :] == digits[:-1]
    return [IGNORED] * equals + digits


SOLVERS = {name: globals()[name] for name in TASKS if name in globals()}


def drawn(task: Task, length: int, batch: int = 8, seed: int = 0) -> Batch:
    return task.generate(torch.Generator().manual_seed(seed), length, batch)


@pytest.mark.parametrize("name", SOLVERS)
def test_rows_are_what_the_task_says(name):
    task = TASKS[name]()
    for length in (task.trained, task.tested[-1]):
        batch = drawn(task, length)
        assert batch.tokens.shape == batch.targets.shape == (8, task.tokens(length))
        assert 0 <= batch.tokens.min() <= batch.tokens.max() < task.vocabulary
        for row, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            assert targets == SOLVERS[name](row, task)


@pytest.mark.parametrize("name", TASKS)
def test_the_generator_alone_decides_and_the_right_answer_scores_best(name):
    task = TASKS[name]()
    one, same, other = (drawn(task, task.trained, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.tokens, same.tokens)
    assert torch.equal(one.targets, same.targets)
    assert not torch.equal(one.tokens, other.tokens)
    right = 50.0 * functional.one_hot(one.targets.clamp(min=0), task.vocabulary)
    best = 0.0 if task.lower_is_better else 1.0
    torch.testing.assert_close(task.score(right, one), torch.full((8,), best))
    assert task.fits(best)
    assert not task.fits(task.chance)
    assert loss(right, one) < 1e-6
    assert (task.score(right.roll(1, -1), one) != best).all()


def test_the_byte_language_model_counts_bits_of_other_files():
    task = TASKS["byte_language_model"]()
    batch = drawn(task, 16, batch=2)
    assert task.score(torch.zeros(2, 16, 256), batch).tolist() == [8.0, 8.0]  # a uniform guess
    assert (batch.tokens[:, 1:] == batch.targets[:, :-1]).all()
    assert (task.part, task.examined().part) == ("trained", "held out")
    parts = {name: bytes(part.tolist()) for name, part in corpus().items()}
    assert parts["held out"][5000:5200] not in parts["trained"]
    assert task.reported({64: 8.0, 1024: 8.0}, 1024, learned=8.0) is None  # it only guesses
    assert task.reported({64: 3.0, 1024: 8.0}, 1024, learned=3.0) == 5.0


class Answers(torch.nn.Module):
    """Says what it is told to."""

    def __init__(self, targets):
        super().__init__()
        self.targets = targets

    def forward(self, tokens, positions):
        return functional.one_hot(self.targets.clamp(min=0), 16).float()


def test_rows_that_ask_nothing_have_no_part_in_the_score():
    """With half as many letters asked for as there are tokens, many rows have too few."""
    task = TASKS["k_back"](trained=8, tested=(8,), k=4)
    batch = task.generate(generator_for(0, "examination", 8), 8, 64)
    assert not (batch.targets != IGNORED).any(1).all()
    assert examined(Answers(batch.targets), task, 8, rows=64, seed=0)[0] == 1.0


def test_coupled_positions_stand_with_their_weights():
    task = TASKS["reversed_addition"](coupled=True)
    batch = drawn(task, 3, batch=64)
    assert batch.positions is not None
    assert 0 <= batch.positions.min() <= batch.positions.max() < task.places
    for row, places in zip(batch.tokens.tolist(), batch.positions.tolist(), strict=True):
        equals = row.index(EQUALS)
        assert places[:3] == places[4:7] == places[equals + 1 :]
    assert len(set(batch.positions[:, 0].tolist())) > 10  # rows begin anywhere


def test_a_text_of_another_python_is_refused():
    with pytest.raises(ValueError, match="text"):
        TASKS["byte_language_model"](text="0")


def test_without_positions_the_order_of_words_cannot_be_told():
    """The known limit: a set has no order, whatever is learned."""
    task = TASKS["word_order"]()
    nope = encodings((), depth=2, nope_layers=(), seed=0)
    model = Model(task.vocabulary, ModelSize(), nope, is_causal=False)
    tokens = drawn(task, 12).tokens
    swapped = torch.where(tokens == 1, 2, torch.where(tokens == 2, 1, tokens))
    with torch.no_grad():
        difference = (model(tokens)[:, 0] - model(swapped)[:, 0]).abs().max()
    assert difference < 1e-5
