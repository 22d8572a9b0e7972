"""Features of real coordinates: NeRF's octaves, Perceiver's bands, random ones, Time2Vec."""

import math
from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import GaussianFourierProjection
from mpmath import mp, mpf
from transformers import SamVisionConfig
from transformers.models.perceiver.modeling_perceiver import (
    build_linear_positions,
    generate_fourier_features,
)
from transformers.models.sam.modeling_sam import SamPositionalEmbedding

from posenc import NeRFFeatures, PerceiverFeatures, RandomFourierFeatures, Time2Vec
from posenc.positions import Coordinates, normalized_grid

POINTS = Coordinates([[Fraction(1, 3), Fraction(-1, 10)], [0.75, 1]])


def mp_of(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nerf_is_equation_4(oracle, dtype):
    """For each coordinate sin and cos of 2^k πp, k from 0, each rounded once."""
    table = NeRFFeatures(axes=2, bands=10).table(POINTS, dtype=dtype)
    assert table.shape == (2, 40)
    for row, point in zip(table.tolist(), POINTS.tolist(), strict=True):
        for axis, number in enumerate(point):
            for k in range(10):
                with mp.workdps(60):
                    angle = 2**k * mp.pi * mp_of(number)
                    whole = (2**k * number) % 1 == 0
                    sine, cosine = mpf(0) if whole else mp.sin(angle), mp.cos(angle)
                    if (2**k * number) % 1 == Fraction(1, 2):
                        cosine = mpf(0)
                    got = row[20 * axis + 2 * k : 20 * axis + 2 * k + 2]
                    assert got == [oracle.nearest(value, dtype) for value in (sine, cosine)]


def test_random_features_are_their_formula(oracle):
    encoding = RandomFourierFeatures(8, axes=2, std=3.0, seed=5)
    table = encoding.table(POINTS)
    for row, point in zip(table.tolist(), POINTS.tolist(), strict=True):
        for j, direction in enumerate(encoding.directions):
            with mp.workdps(60):
                turns = sum(b * p for b, p in zip(direction, point, strict=True))
                angle = 2 * mp.pi * mp_of(turns)
                assert row[j] == oracle.nearest(mp.cos(angle), torch.float32)
                assert row[4 + j] == oracle.nearest(mp.sin(angle), torch.float32)


def test_time2vec_is_equation_1():
    encoding = Time2Vec(4)
    with torch.no_grad():
        encoding.weight.copy_(torch.tensor([2.0, 1.0, 0.5, 0.0]))
        encoding.bias.copy_(torch.tensor([1.0, 0.0, 0.25, 2.0]))
    table = encoding.table(Coordinates([0.5, -3]))
    want = [[2 * t + 1, math.sin(t), math.sin(0.5 * t + 0.25), math.sin(2.0)] for t in (0.5, -3.0)]
    torch.testing.assert_close(table, torch.tensor(want), rtol=0, atol=1e-7)
    cosine = Time2Vec(4, "cos")
    cosine.load_state_dict(dict(encoding.state_dict()))
    assert cosine.table([0])[0, 3].item() == pytest.approx(math.cos(2.0))


@torch.no_grad()
def test_prompts_of_sam_and_noise_levels_of_score_models_have_directions_of_their_own():
    """The models round angles, of two products, to float32."""
    sam = SamPositionalEmbedding(SamVisionConfig(num_pos_feats=6, hidden_size=32))
    noise = GaussianFourierProjection(6, scale=16.0, log=False)
    points = torch.tensor([[[[0.1, 0.7], [1.0, 0.25]]]])
    levels = torch.tensor([[0.3], [2.0]])
    for given, at, want in (
        (sam.positional_embedding.T, 2 * points - 1, sam(points)),
        (noise.weight[:, None], levels, noise(levels[:, 0])),
    ):
        ours = RandomFourierFeatures.from_directions(given, sines_first=True)
        assert "sines_first=True, given directions" in repr(ours)
        most = 2 * math.pi * (at.abs() @ given.abs().T).max().item()
        got = ours.table(Coordinates(at))
        torch.testing.assert_close(got, want, rtol=0, atol=2**-24 * (6 * most + 2))


@pytest.mark.parametrize("include_input", [True, False])
def test_perceiver_is_the_models(include_input):
    places = build_linear_positions((5, 7)).reshape(1, 35, 2)
    want = generate_fourier_features(places, 6, (32, 9), concat_pos=include_input)
    ours = PerceiverFeatures((32, 9), 6, include_input=include_input)
    table = ours.table(normalized_grid(5, 7, at="corners"))
    # Angles up to 16π of coordinates, bands and products that are each rounded to float32.
    torch.testing.assert_close(
        table, want.view_as(table), rtol=0, atol=2**-24 * (3 * 16 * math.pi + 2)
    )


def test_bands_of_perceiver_are_rounded_once(oracle):
    """A third of the way between them too, at a coordinate that is no float."""
    features = PerceiverFeatures((9,), bands=4, include_input=False)
    (row,) = features.table(
        Coordinates.stack([Coordinates([1], scale=Fraction(1, 3))], -1)
    ).tolist()
    for k, band in enumerate((Fraction(1), Fraction(13, 6), Fraction(10, 3), Fraction(9, 2))):
        with mp.workdps(60):
            angle = mp.pi * mp_of(band / 3)
            cosine = mpf(0) if band / 3 == Fraction(3, 2) else mp.cos(angle)
            want = [oracle.nearest(value, torch.float32) for value in (mp.sin(angle), cosine)]
        assert [row[k], row[4 + k]] == want
