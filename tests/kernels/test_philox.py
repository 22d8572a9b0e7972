"""Philox against the published answers, and masks against what chance says of them."""

import math

import pytest
import torch

from posenc.kernels.philox import Dropping, drawn, kept, philox

# Known answers of Random123, the library of the paper's authors, for Philox 4x32 with 7 rounds:
# counter, key, words.
ANSWERS = {
    "zeros": ("00000000 00000000 00000000 00000000", "00000000 00000000",
              "5f6fb709 0d893f64 4f121f81 4f730a48"),
    "ones": ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
             "5207ddc2 45165e59 4d8ee751 8c52f662"),
    "digits of pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
                     "4dfccaba 190a87f0 c47362ba b6b5242a"),
}  # fmt: skip


def mask_of(shape, dropping):
    return kept(shape, dropping.threshold, dropping.key)


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_philox_gives_the_published_answers(counter, key, answer):
    low, high = words(key)
    got = philox(torch.tensor(words(counter)), low | high << 32)
    assert got.tolist() == words(answer)


def test_an_element_depends_on_its_number_alone():
    """Element 64 b + 16 w + i takes word w of counter 16 b + i."""
    dropping = Dropping(0.5, 2**63 - 5)
    whole = mask_of((7, 111), dropping)
    assert torch.equal(whole.flatten()[:100], mask_of((100,), dropping))
    for number in (0, 1, 15, 16, 63, 64, 500, 776):
        block, word, counter = number // 64, number // 16 % 4, number % 16
        draw = philox(torch.tensor([16 * block + counter, 0, 0, 0]), dropping.key)[word]
        assert whole.flatten()[number] == (draw >= 2**31)


@pytest.mark.parametrize("probability", [0.02, 0.1, 0.5, 0.93])
def test_so_many_fall_as_they_should_everywhere(probability):
    """Of all, of each column and of each row: within five standard deviations."""
    mask = mask_of((1000, 1000), Dropping(probability, 99)).double()
    for share, draws in ((mask.mean(), 10**6), (mask.mean(0), 1000), (mask.mean(1), 1000)):
        deviation = math.sqrt(probability * (1 - probability) / draws)
        assert (share - (1 - probability)).abs().max() < 5 * deviation


def test_keys_come_from_torchs_generator():
    torch.manual_seed(1)
    keys = [drawn(0.1).key for _ in range(100)]
    assert len(set(keys)) == 100
    torch.manual_seed(1)
    assert drawn(0.1).key == keys[0]
    state = torch.get_rng_state()
    with torch.random.fork_rng():
        forked = drawn(0.2).key
    assert torch.equal(torch.get_rng_state(), state)
    assert drawn(0.2).key == forked == keys[1]
