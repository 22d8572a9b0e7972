"""Fractional timesteps of diffusion, against diffusers' own embedding and against mpmath."""

from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import get_timestep_embedding
from mpmath import mp, mpf

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import timestep
from posenc.positions import Coordinates

TIMES = torch.tensor([0.0, 1.0, 0.5, 999.9, 499.123, 1e-3])


@pytest.mark.parametrize("dim", [8, 9, 320])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("scale", [1, 1000, Fraction(1, 8)])
@pytest.mark.parametrize("base", [10_000, 100])
def test_it_is_that_of_diffusers(dim, flip, shift, scale, base):
    """As near as their float32 angles are: a few roundings of each."""
    theirs = get_timestep_embedding(
        TIMES, dim, flip_sin_to_cos=flip, downscale_freq_shift=shift, scale=float(scale),
        max_period=base,
    )  # fmt: skip
    ours = Sinusoidal(dim, float(base), timestep(shift, flip)).table(
        Coordinates(TIMES, scale=scale)
    )
    bound = 8 * 2.0**-24 * (1 + TIMES * float(scale))
    assert ((ours - theirs).abs() <= bound[:, None]).all()
    assert ours.shape == theirs.shape


@pytest.mark.parametrize("shift", [0, 1])
def test_it_is_correctly_rounded(oracle, shift):
    """Where theirs errs by the 2^-15 of an angle of 999.9, ours is the nearest float32."""
    times = Coordinates(TIMES)
    table = Sinusoidal(8, convention=timestep(shift)).table(times)
    theirs = get_timestep_embedding(TIMES, 8, flip_sin_to_cos=True, downscale_freq_shift=shift)
    wrong = 0
    for row, number in enumerate(times.tolist()):
        for i in range(4):
            with mp.workdps(60):
                angle = mpf(number.numerator) / number.denominator
                angle *= oracle.frequency(1e4, i, 4 - shift)
                for channel, value in ((i, mp.cos(angle)), (4 + i, mp.sin(angle))):
                    nearest = oracle.nearest(value, torch.float32)
                    assert table[row, channel].item() == nearest
                    wrong += theirs[row, channel].item() != nearest
    assert wrong > 0
