"""Sinusoidal, convention by convention, held against code and formulas that are not ours."""

import math

import numpy as np
import pytest
import torch
from transformers import XLNetConfig
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.roformer.modeling_roformer import RoFormerSinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids
from transformers.models.xlnet.modeling_xlnet import XLNetModel

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.positions import consecutive, left_padded

HALF_STEP = 2.0**-25 + 1e-12
"""Half a float32 step below 1: a correctly rounded value is as near to float64's."""


def near(table, expected, tolerance=HALF_STEP):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert table.shape == expected.shape
    assert (table.double() - expected).abs().max().item() <= tolerance


def tutorial(length, dim, base=10_000.0):
    position = np.arange(length)[:, None]
    div_term = np.exp(np.arange(0, dim, 2) * (-math.log(base) / dim))
    pe = np.zeros((length, dim))
    pe[:, 0::2] = np.sin(position * div_term)
    pe[:, 1::2] = np.cos(position * div_term[: dim // 2])
    return pe


def diffusers(timesteps, dim, flip_sin_to_cos, downscale_freq_shift, max_period=10_000):
    """diffusers' get_timestep_embedding."""
    half = dim // 2
    exponent = -math.log(max_period) * np.arange(half) / (half - downscale_freq_shift)
    angles = np.asarray(timesteps)[:, None] * np.exp(exponent)[None]
    emb = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    if flip_sin_to_cos:
        emb = np.concatenate([emb[:, half:], emb[:, :half]], axis=-1)
    return np.pad(emb, ((0, 0), (0, dim % 2)))


def per_channel(length, dim, base, exponent, first=0):
    """One channel after the other, as Caffe2, the slides and the double exponent have them."""
    rows = []
    for p in range(first, length + first):
        row = []
        for j in range(first, dim + first):
            angle = p / base ** exponent(j)
            row.append(math.sin(angle) if j % 2 == 0 else math.cos(angle))
        rows.append(row)
    return rows


FORMULAS = {
    "paper": lambda length, dim, n: tutorial(length, dim, n),
    "concatenated": lambda length, dim, n: diffusers(range(length), dim, False, 0, n),
    "tensor2tensor": lambda length, dim, n: diffusers(range(length), dim, False, 1, n),
    "timestep": lambda length, dim, n: diffusers(range(length), dim, True, 0, n),
    "per_dimension": lambda length, dim, n: per_channel(length, dim, n, lambda j: j / dim),
    "per_dimension_one_based": lambda length, dim, n: per_channel(
        length, dim, n, lambda k: k / dim, first=1
    ),
    "double_exponent": lambda length, dim, n: per_channel(length, dim, n, lambda j: 2 * j / dim),
}
REFUSES_ODD = {"concatenated"}
LEAST = {"tensor2tensor": 4, "concatenated": 2, "timestep": 2}


@pytest.mark.parametrize("base", [10_000.0, 100.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 6, 7, 14, 15, 64, 65])
@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_at_every_width(name, dim, base):
    if dim < LEAST.get(name, 1) or (dim % 2 and name in REFUSES_ODD):
        with pytest.raises(ValueError, match=f"dim is {dim}; "):
            Sinusoidal(dim, base, name)
        return
    table = Sinusoidal(dim, base, name).table(consecutive(40))
    # libm may be off by a last digit of float64, and 40 rows of angles by a few.
    near(table, FORMULAS[name](40, dim, base), tolerance=HALF_STEP + 1e-13)


def distilbert():
    out = torch.empty(512, 64)
    create_sinusoidal_embeddings(512, 64, out)
    return out


def pytorch_tutorial():
    position = torch.arange(5000).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, 512, 2) * (-math.log(10000.0) / 512))
    pe = torch.zeros(5000, 512)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@pytest.mark.parametrize(
    ("theirs", "convention", "arithmetic"),
    [
        (distilbert, "paper", "exact"),  # float64 rounded once, as the next two
        (MarianSinusoidalPositionalEmbedding(512, 64).create_weight, "concatenated", "exact"),
        (RoFormerSinusoidalPositionalEmbedding(512, 64).create_weight, "concatenated", "exact"),
        (lambda: sinusoids(1500, 384), "tensor2tensor", "float32-log"),  # Whisper
        (pytorch_tutorial, "paper", "float32-log"),
    ],
)
def test_models_are_equal_to_the_last_bit(theirs, convention, arithmetic):
    expected = theirs()
    length, dim = expected.shape
    table = Sinusoidal(dim, convention=convention, arithmetic=arithmetic).table(consecutive(length))
    assert torch.equal(table, expected)
    if arithmetic != "exact":
        exact = Sinusoidal(dim, convention=convention).table(consecutive(length))
        assert not torch.equal(exact, expected)
        near(exact, expected.double(), 4e-4)


def test_concatenated_is_xlnet():
    model = XLNetModel(XLNetConfig(vocab_size=9, d_model=64, n_layer=1, n_head=2, d_inner=8))
    theirs = model.relative_positional_encoding(qlen=30, klen=50)[:, 0]
    positions = torch.arange(50, -30, -1)
    ours = Sinusoidal(64, convention="concatenated", arithmetic="float32")
    assert torch.equal(ours.table(positions), theirs)
    near(Sinusoidal(64, convention="concatenated").table(positions), theirs.double(), 5e-6)


@pytest.mark.parametrize("dim", [64, 65])
def test_tensor2tensor_with_offset_2_is_m2m100(dim):
    padding = 1
    theirs = M2M100SinusoidalPositionalEmbedding(100, dim, padding)
    ids = torch.tensor([[5, 6, 7, 8, 9], [1, 1, 7, 8, 9], [5, 6, 7, 1, 1]])
    positions = left_padded(ids != padding)
    ours = Sinusoidal(dim, convention="tensor2tensor", offset=2, arithmetic="float32-log")
    real = ids != padding
    assert torch.equal(ours.table(positions)[real], theirs(ids)[real])
    # Theirs gives padding a row of zeros; ours leaves padding to the attention mask.
    assert (theirs(ids)[~real] == 0).all()
    exact = Sinusoidal(dim, convention="tensor2tensor", offset=2)
    near(exact.table(consecutive(98)), theirs.weights[2:100].double(), 3e-5)
    if dim % 2:
        assert (exact.table(consecutive(98))[:, -1] == 0).all()
