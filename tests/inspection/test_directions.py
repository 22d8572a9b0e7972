"""Vectors of frequencies: what they say is what the tables do."""

import pytest
import torch

from posenc import AxialRotary, DirectedRotary, MultimodalRotary, RoPEMixed, Rotary
from posenc.inspection.directions import frequency_vectors

ENCODINGS = {
    "axial": (AxialRotary(16), 2),
    "pixtral": (AxialRotary(16, form="pixtral"), 2),
    "wan": (AxialRotary(20, form="wan"), 3),
    "multimodal": (MultimodalRotary(Rotary(16), (4, 2, 2), "interleaved"), 3),
    "directed": (DirectedRotary.spiral(16), 2),
    "golden gate": (DirectedRotary.golden_gate(8, axes=3, heads=2), 3),
    "mixed": (RoPEMixed(8, heads=2), 2),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_tables_are_cos_and_sin_of_their_products_with_points(name):
    encoding, axes = ENCODINGS[name]
    points = torch.randint(-9, 9, (6, axes), generator=torch.Generator().manual_seed(0))
    vectors = frequency_vectors(encoding)
    angles = torch.einsum("...pa,sa->s...p", vectors, points.double())
    want = torch.stack((angles.cos(), angles.sin()), dim=1)
    got = encoding.table(points, dtype=torch.float64).detach()
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


def test_what_turns_by_no_product_is_refused():
    with pytest.raises(TypeError, match="Give an axial, multimodal, directed or mixed"):
        frequency_vectors(Rotary(8))
