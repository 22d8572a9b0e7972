"""Fractional timesteps of diffusion, against diffusers' own embedding and against mpmath."""

from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import get_timestep_embedding

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
