"""AxialSinusoidal as generators of images and videos have it, against diffusers' own functions.

Theirs round the quotients of coordinates to float32, and nothing else.
"""

from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import PatchEmbed, get_2d_sincos_pos_embed, get_3d_sincos_pos_embed

from posenc import AxialSinusoidal, recipes
from posenc.positions import grid

ULP = 2.0**-24


@pytest.mark.parametrize(("size", "base_size", "scale"), [(24, 16, 2), (32, 64, 1), (9, 7, 3)])
def test_pixart_and_stable_diffusion_3(size, base_size, scale):
    theirs = get_2d_sincos_pos_embed(
        16, size, base_size=base_size, interpolation_scale=scale, output_type="pt"
    )
    encoding = AxialSinusoidal(16, stretch=Fraction(size * scale, base_size))
    ours = encoding.table(grid(size, size), dtype=torch.float64)
    # Two quotients, each rounded once; the fastest pair turns by what comes out.
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2 * base_size / scale * ULP)


@pytest.mark.parametrize("scale", [1.875, 1.0])
def test_cogvideox(scale):
    theirs = get_3d_sincos_pos_embed(
        32, (5, 4), 3, spatial_interpolation_scale=scale, output_type="pt"
    )  # columns before rows
    encoding = AxialSinusoidal(32, "cogvideox", stretch=(1, scale, scale))
    ours = encoding.table(grid(3, 4, 5), dtype=torch.float64)
    torch.testing.assert_close(ours, theirs.flatten(0, 1), rtol=0, atol=2 * 5 / scale * ULP)


def test_pixart_squeezes_each_side_of_an_oblong():
    """The model computes the table of another height and width anew, each over its own base."""
    module = PatchEmbed(height=18, width=18, patch_size=2, embed_dim=16, interpolation_scale=2)
    with torch.no_grad():
        module.proj.weight.zero_(), module.proj.bias.zero_()
        want = module(torch.zeros(1, 3, 10, 14))[0]  # of 5 × 7 patches
    encoding = recipes.pixart(16, size=(5, 7), base_size=9).tokens[0]
    torch.testing.assert_close(encoding.table(grid(5, 7)), want, rtol=0, atol=9 * ULP)


def test_stable_diffusion_3_crops_the_middle():
    module = PatchEmbed(height=16, width=16, patch_size=2, embed_dim=16, pos_embed_max_size=24)
    want = module.cropped_pos_embed(10, 14)[0]  # of 5 × 7 patches
    (ours,) = recipes.stable_diffusion_3(16, max_size=24, base_size=8).tokens
    table = ours.table(grid(5, 7, start=((24 - 5) // 2, (24 - 7) // 2)))
    torch.testing.assert_close(table, want.float(), rtol=0, atol=2 * 8 * ULP + ULP)
