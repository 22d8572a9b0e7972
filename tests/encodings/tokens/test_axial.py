"""AxialSinusoidal: each form against the models that have it, and against mpmath."""

from dataclasses import replace
from fractions import Fraction
from math import cos, sin
from types import SimpleNamespace

import pytest
import torch
from mpmath import mp
from positional_encodings.torch_encodings import PositionalEncoding2D, PositionalEncoding3D
from transformers import ViTMAEConfig
from transformers.models.conditional_detr.modeling_conditional_detr import (
    ConditionalDetrSinePositionEmbedding,
)
from transformers.models.dab_detr.modeling_dab_detr import DabDetrSinePositionEmbedding
from transformers.models.deformable_detr.modeling_deformable_detr import (
    DeformableDetrSinePositionEmbedding,
)
from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding
from transformers.models.rt_detr.modeling_rt_detr import RTDetrSinePositionEmbedding
from transformers.models.vit_mae.modeling_vit_mae import ViTMAEEmbeddings

from posenc import AxialSinusoidal
from posenc.encodings.tokens.conventions import Interleaved
from posenc.encodings.tokens.grid_forms import GRID_FORMS
from posenc.positions import grid, masked_grid, prefixed


def padded(*sizes, height=7, width=9):
    """A mask of images of several sizes."""
    mask = torch.zeros(len(sizes), height, width, dtype=torch.bool)
    for image, (rows, columns) in zip(mask, sizes, strict=True):
        image[:rows, :columns] = True
    return mask


def test_mae_is_vit_mae_with_its_class_token():
    theirs = ViTMAEEmbeddings(ViTMAEConfig(hidden_size=48, image_size=24, patch_size=4))
    theirs.initialize_weights()
    ours = AxialSinusoidal(48).table(prefixed(grid(6, 6)))
    torch.testing.assert_close(ours, theirs.position_embeddings[0], rtol=0, atol=1e-7)
    assert not ours[0].any()


def test_rt_detr():
    theirs = RTDetrSinePositionEmbedding(32)(
        width=5, height=3, device=torch.device("cpu"), dtype=torch.float64
    )
    ours = AxialSinusoidal(32, "rt_detr").table(grid(3, 5), dtype=torch.float64)
    torch.testing.assert_close(ours, theirs[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("form", "theirs"),
    [
        ("detr", DetrSinePositionEmbedding),
        ("detr", ConditionalDetrSinePositionEmbedding),
        ("deformable_detr", DeformableDetrSinePositionEmbedding),
    ],
)
def test_detr_with_images_of_several_sizes(form, theirs):
    mask = padded((7, 9), (3, 4), (1, 1), (6, 2))
    module = theirs(16, normalize=True)
    expected = module((4, 3, 7, 9), "cpu", torch.float64, mask).flatten(2).mT
    ours = AxialSinusoidal(32, form).table(masked_grid(mask), dtype=torch.float64)
    real = mask.flatten(1)
    torch.testing.assert_close(ours[real], expected[real], rtol=0, atol=1e-14)
    if form == "detr":  # padding too; in Deformable DETR that is −½ / ε, whatever it means
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-14)


def test_dab_detr_has_another_base():
    mask = padded((7, 9), (3, 4))
    fields = {"temperature_height": 20, "temperature_width": 20, "hidden_size": 32}
    config = SimpleNamespace(**fields, sine_position_embedding_scale=None)
    theirs = DabDetrSinePositionEmbedding(config)
    expected = theirs(torch.zeros(2, 3, 7, 9, dtype=torch.float64), mask).flatten(2).mT
    ours = AxialSinusoidal(32, "detr", base=20).table(masked_grid(mask))
    torch.testing.assert_close(ours[mask.flatten(1)], expected[mask.flatten(1)].float(),
                               rtol=0, atol=2e-6)  # fmt: skip


@pytest.mark.parametrize("dim", [8, 10, 13])
def test_positional_encodings_in_two_and_three_axes(dim):
    two = PositionalEncoding2D(dim)(torch.zeros(1, 4, 5, dim)).flatten(1, 2)[0]
    ours = AxialSinusoidal(dim, "positional_encodings")
    torch.testing.assert_close(ours.table(grid(4, 5)), two, rtol=0, atol=2e-6)
    three = PositionalEncoding3D(dim)(torch.zeros(1, 2, 3, 4, dim)).flatten(1, 3)[0]
    ours = AxialSinusoidal(dim, "positional_encodings", axes=3)
    torch.testing.assert_close(ours.table(grid(2, 3, 4)), three, rtol=0, atol=2e-6)


def sincos(values, width):
    """[sin | cos] of values · 10000^(−2i / width)."""
    angles = values.double().unsqueeze(-1) * 10_000.0 ** (
        -torch.arange(0, width, 2).double() / width
    )
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def test_timm_has_all_sines_first():
    y, x = grid(3, 5).unbind(-1)
    by_axis = sincos(y, 8), sincos(x, 8)
    expected = torch.cat([part[:, half] for half in (slice(0, 4), slice(4, 8)) for part in by_axis],
                         dim=-1)  # fmt: skip
    ours = AxialSinusoidal(16, "timm").table(grid(3, 5), dtype=torch.float64)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("place", [0, 7, 10**9, -(2**40)])
def test_values_are_correctly_rounded(place):
    table = AxialSinusoidal(8, stretch=Fraction(3, 7)).table([[5, place]])[0]
    with mp.workdps(80):
        angles = [mp.mpf(along) * 7 / 3 * mp.mpf(10_000) ** (-mp.mpf(i) / 2)
                  for along in (place, 5) for i in (0, 1)]  # fmt: skip
        truth = [f(a) for at in (0, 2) for f in (mp.sin, mp.cos) for a in angles[at : at + 2]]
    assert [float(value) for value in table] == pytest.approx(
        [float(value) for value in truth], rel=2**-24, abs=2e-45
    )


def test_forms_of_ones_own_are_what_they_say():
    """A third of the width for rows and two for columns, sines first, columns before rows."""
    form = replace(
        GRID_FORMS["mae"], any_axes=False, order=(1, 0), shares=(2, 1), start=(3, 1),
        waveform=Interleaved(),
    )  # fmt: skip
    (row,) = AxialSinusoidal(6, form, base=16.0).table([[1, 2]], dtype=torch.float64).tolist()
    x, y = 2 + 3, 1 + 3
    wanted = [sin(x), cos(x), sin(x / 4), cos(x / 4), sin(y), cos(y)]
    assert row == pytest.approx(wanted, abs=1e-12)
