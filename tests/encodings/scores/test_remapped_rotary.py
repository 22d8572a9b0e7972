"""Merged scores against a loop over pairs, the authors' two attentions, and plain rotary."""

from math import pi

import pytest
import torch
from tests.encodings.content import wide as random

from posenc import DualChunk, RemappedRotary, ReRoPE, Rotary, SelfExtend
from posenc.frequencies import Geometric, YaRN
from posenc.positions import consecutive

HEADS, WIDTH, LENGTH = 4, 8, 40
REMAPPINGS = {
    "self-extend": SelfExtend(group=3, window=5),
    "rerope": ReRoPE(window=6),
    "dual-chunk": DualChunk(chunk=12, local=4),
}


def content(length: int = LENGTH):
    return random(1, HEADS, length, WIDTH), random(1, 2, length, WIDTH, seed=1)


def encoded_scores(rotary: Rotary, q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor):
    """q and k as attention has them, rotated, and their scaled products."""
    table = rotary.table(positions, dtype=q.dtype)
    q, k = rotary.encode_queries(q, table), rotary.encode_keys(k, table)
    return q, k, q @ k.repeat_interleave(HEADS // 2, dim=1).mT / WIDTH**0.5


def pair_by_pair(q, k, distance, rotary: Rotary):
    """Each product by itself, as complex numbers turned by their distance."""
    frequencies = 2 * pi / torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    paired = [torch.complex(*x.unflatten(-1, (2, -1)).unbind(-2)) for x in (q, k)]
    if rotary.pairing == "interleaved":
        paired = [torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) for x in (q, k)]
    scores = torch.empty(1, HEADS, q.shape[-2], k.shape[-2], dtype=torch.float64)
    for i in range(q.shape[-2]):
        for j in range(k.shape[-2]):
            turn = torch.polar(torch.ones_like(frequencies), distance[i, j] * frequencies)
            for head in range(HEADS):
                product = paired[0][0, head, i] * paired[1][0, head // 2, j].conj() * turn
                scores[0, head, i, j] = product.real.sum() / WIDTH**0.5
    return scores


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("remapping", REMAPPINGS.values(), ids=REMAPPINGS)
def test_it_is_rotation_pair_by_pair(remapping, pairing):
    rotary, positions = Rotary(WIDTH, pairing=pairing), consecutive(20)
    q, k = content(20)
    rotated_q, rotated_k, scores = encoded_scores(rotary, q, k, positions)
    got = RemappedRotary(HEADS, rotary, remapping)(scores, q=rotated_q, k=rotated_k)
    want = pair_by_pair(q, k, remapping.distance(positions, positions), rotary)
    torch.testing.assert_close(got, want)


def test_the_attention_factor_of_a_schedule_counts_once():
    schedule = YaRN(Geometric(WIDTH), factor=8.0, trained_length=64)
    rotary, remapping, positions = Rotary(schedule), REMAPPINGS["rerope"], consecutive(20)
    q, k = content(20)
    rotated_q, rotated_k, scores = encoded_scores(rotary, q, k, positions)
    got = RemappedRotary(HEADS, rotary, remapping)(scores, q=rotated_q, k=rotated_k)
    want = pair_by_pair(q, k, remapping.distance(positions, positions), rotary)
    torch.testing.assert_close(got, want * schedule.attention_factor**2)
