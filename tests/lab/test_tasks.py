"""Each task against a solver that was written from its description, one row at a time."""

from math import isnan, log, log2

import pytest
import torch
from msgspec.structs import replace
from tests.lab.conftest import configuration

from posenc.lab import ModelSize, Training
from posenc.lab.encodings import drawn as encodings
from posenc.lab.model import built
from posenc.lab.seeds import generator_for
from posenc.lab.tasks import TASKS, Batch, Task
from posenc.lab.tasks.base import IGNORED, loss
from posenc.lab.tasks.counting import BEGIN, STOP
from posenc.lab.tasks.local_language_model import FAR, NEAR
from posenc.lab.tasks.passkey import MARK
from posenc.lab.tasks.reversed_addition import EQUALS, PLUS
from posenc.lab.training import examined, trained


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


SOLVERS = {
    each.__name__: each
    for each in (
        word_order, local_language_model, flip_flop, k_back, k_front, passkey, copy, counting,
        reversed_addition,
    )
}  # fmt: skip


def drawn(task: Task, length: int, batch: int = 8, seed: int = 0) -> Batch:
    return task.generate(torch.Generator().manual_seed(seed), length, batch)


def test_every_task_has_a_solver():
    assert SOLVERS.keys() == TASKS.keys() - {"byte_language_model"}


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
    right = 50.0 * torch.nn.functional.one_hot(one.targets.clamp(min=0), task.vocabulary)
    best = 0.0 if task.lower_is_better else 1.0
    torch.testing.assert_close(task.score(right, one), torch.full((8,), best))
    assert task.fits(best)
    assert not task.fits(task.chance)
    assert loss(right, one) < 1e-6
    wrong = right.roll(1, -1)
    assert loss(wrong, one) > 10
    assert (task.score(wrong, one) != best).all()


def test_one_wrong_token_spoils_an_exact_match_and_a_share_of_an_accuracy():
    for name, expected in (("copy", 0.0), ("k_front", 1 - 1 / 29)):
        task = TASKS[name]()
        batch = drawn(task, task.trained, batch=1)
        right = torch.nn.functional.one_hot(batch.targets.clamp(min=0), task.vocabulary).float()
        right[0, -1] = right[0, -1].roll(1)
        assert task.score(right, batch).item() == pytest.approx(expected)


def test_bits_a_byte_are_those_of_a_uniform_guess():
    task = TASKS["byte_language_model"]()
    batch = drawn(task, 16, batch=2)
    assert task.score(torch.zeros(2, 16, 256), batch).tolist() == [log2(256)] * 2
    assert (batch.tokens[:, 1:] == batch.targets[:, :-1]).all()


def test_the_byte_language_model_is_examined_on_other_files():
    from posenc.lab.tasks.byte_language_model import corpus

    task = TASKS["byte_language_model"]()
    assert (task.part, task.examined().part) == ("trained", "held out")
    parts = {name: bytes(part.tolist()) for name, part in corpus().items()}
    assert parts["held out"][5000:5200] not in parts["trained"]
    with pytest.raises(ValueError, match=r"text is 0; this machine's Python library has \w+\. Run"):
        TASKS["byte_language_model"](text="0")


def test_a_model_that_guesses_adds_no_bits_that_can_be_compared():
    task = TASKS["byte_language_model"]()
    assert task.reported({64: 8.0, 1024: 8.0}, 1024, learned=8.0) is None
    assert task.reported({64: 3.0, 1024: 8.0}, 1024, learned=3.0) == 5.0


@pytest.mark.parametrize(
    ("name", "k", "said"),
    [
        ("k_back", 1, "The last letter, where"),
        ("k_back", 2, "The second last letter, where"),
        ("k_back", 12, "The 12th last letter, where"),
        ("k_front", 1, "The first token of the row"),
        ("k_front", 23, "The 23rd token of the row"),
    ],
)
def test_a_task_says_what_it_was_asked_for(name, k, said):
    assert TASKS[name](k=k).about.startswith(said)


def test_rows_that_ask_nothing_have_no_part_in_a_score():
    """With half as many letters asked for as there are tokens, many rows have too few."""
    task = TASKS["k_back"](trained=8, tested=(8,), k=4)

    class Right(torch.nn.Module):
        def forward(self, tokens, positions):
            targets = next(asked)
            return torch.nn.functional.one_hot(targets.clamp(min=0), 16).float()

    generator = generator_for(0, "examination", 8)
    batch = task.generate(generator, 8, 64)
    assert not (batch.targets != IGNORED).any(1).all()
    asked = iter([batch.targets])
    assert examined(Right(), task, 8, rows=64, seed=0)[0] == 1.0


class OneByOne(TASKS["k_back"]):
    """Rows so long that they are examined one by one."""

    def tokens(self, length):
        return 16384


def test_rows_that_ask_nothing_have_no_part_in_a_loss_either():
    """One who says nothing is ln 16 away from any target, of which no row that has none knows."""
    task = OneByOne(trained=8, tested=(8,), k=4)
    nothing = torch.nn.Module()
    nothing.forward = lambda tokens, positions: torch.zeros(*tokens.shape, 16)
    score, lost = examined(nothing, task, 8, rows=64, seed=0)
    assert lost == pytest.approx(log(16))
    assert 0 <= score < 1
    generator = generator_for(0, "examination", 8)
    asks = [bool((task.generate(generator, 8, 1).targets != IGNORED).any()) for _ in range(64)]
    assert 0 < sum(asks) < 64
    seed = next(
        seed
        for seed in range(100)
        if (task.generate(generator_for(seed, "examination", 8), 8, 1).targets == IGNORED).all()
    )
    assert all(map(isnan, examined(nothing, task, 8, rows=1, seed=seed)))  # and no score of 0


def test_coupled_positions_stand_with_their_weights():
    task = TASKS["reversed_addition"](coupled=True)
    batch = drawn(task, 3, batch=64)
    assert batch.positions is not None
    assert 0 <= batch.positions.min() <= batch.positions.max() < task.places
    for row, places in zip(batch.tokens.tolist(), batch.positions.tolist(), strict=True):
        equals = row.index(EQUALS)
        assert places[:3] == places[4:7] == places[equals + 1 :]
    starts = set((batch.positions[:, 0]).tolist())
    assert len(starts) > 10  # rows begin anywhere


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("flip_flop", {"trained": 24, "tested": (48,)}, "tested is [48]; it must hold the trained"),
        ("flip_flop", {"trained": 7, "tested": (7,)}, "length is 7; flip-flop takes an even one"),
        ("k_back", {"k": 30}, "k is 30; of the 48 tokens of the shortest row about half"),
        ("k_front", {"k": 99}, "k is 99; the shortest tested row has 32"),
        ("counting", {"tested": (16, 500)}, "there are 128 numbers"),
        ("copy", {"trained": 0, "tested": (0,)}, "trained is 0; it must be a whole number from 1"),
    ],
)
def test_lengths_that_make_no_rows_are_refused(name, options, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        TASKS[name](**options)
    assert said in str(error.value)


def test_without_positions_the_order_of_words_cannot_be_told():
    """The known limit: a set has no order, whatever is learned."""

    task = TASKS["word_order"]()
    nope = encodings((), depth=2, nope_layers=(), seed=0)
    model = built(task.vocabulary, ModelSize(), nope, is_causal=False, seed=0)
    tokens = drawn(task, 12).tokens
    swapped = torch.where(tokens == 1, 2, torch.where(tokens == 2, 1, tokens))
    with torch.no_grad():
        difference = (model(tokens)[:, 0] - model(swapped)[:, 0]).abs().max()
    assert difference < 1e-5


def test_a_model_learns():
    """The loss falls well below that of a guess: the whole of it is wired."""
    asked = configuration(("Sinusoidal(8)",))
    training = Training(steps=150, batch=16, learning_rate=1e-2, examined=16)
    result = trained(replace(asked, training=training)).written
    assert result["curve"][0][1] > 1.8
    assert result["loss"] < 1.0
