"""Encodings that read content, inside an encoder: padded, packed and decoded rows agree."""

import pytest
import torch
from torch.testing import assert_close

from posenc import (
    CABLE,
    DAPE,
    KERPLE,
    AdditiveGRAPE,
    CoPE,
    Forgetting,
    LogTemperature,
    PaTH,
    Positional,
    RelativeLogits,
    RemappedRotary,
    RePo,
    ReRoPE,
    Rotary,
)
from posenc.transformer import Encoder, KeyValueCache

CLOSE = {"atol": 1e-12, "rtol": 0}
POSITIONALS = {
    "cope": lambda: Positional(scores=CoPE(4, 4, 5, std=1.0)),
    "forgetting": lambda: Positional(scores=Forgetting(4, 4, std=1.0)),
    "both": lambda: Positional(scores=(CoPE(4, 4, 5, std=1.0), Forgetting(4, 4, std=1.0))),
    "remapped": lambda: remapped(Rotary(4)),
    "cable": lambda: Positional(queries_keys=Rotary(4), scores=CABLE(4, 16, std=1.0)),
    "path": lambda: Positional(scores=(PaTH(4, 4, 16, 2, std=1.0), CABLE(4, 16))),
    "repo": lambda: Positional(scores=RePo(4, Rotary(4), 16, blend=0.5, std=0.5)),
    "logits": lambda: Positional(scores=(RelativeLogits(4, 16, 3, 4), LogTemperature(4, floor=3))),
    "grape": lambda: Positional(scores=AdditiveGRAPE(4, 4, omega=40.0)),
    "dape": lambda: Positional(scores=DAPE(4, KERPLE(4))),
}


def remapped(rotary):
    return Positional(queries_keys=rotary, scores=RemappedRotary(4, rotary, ReRoPE(2)))


@pytest.fixture(params=POSITIONALS.values(), ids=POSITIONALS)
def encoder(request):
    torch.manual_seed(0)
    encoder = Encoder(16, 4, 2, positional=request.param(), is_causal=True, kv_heads=2)
    return encoder.double().eval()


def sentence(length):
    return torch.randn(length, 16, dtype=torch.float64)


@pytest.mark.parametrize("real", ["00111", "11100", "10110", "01001"])
def test_padding_full_of_nan_does_not_matter(encoder, real):
    mask = torch.tensor([[letter == "1" for letter in real]])
    tokens = sentence(int(mask.sum()))
    x = torch.full((1, 5, 16), torch.nan, dtype=torch.float64)
    x[mask] = tokens
    out = encoder(x, padding_mask=mask)
    assert_close(out[mask], encoder(tokens[None])[0], **CLOSE)


@pytest.mark.parametrize("turns", [("110", "011"), ("011", "001"), ("101", "010", "11")])
def test_a_later_turn_may_begin_with_padding(encoder, turns):
    """A chat in batches: each turn is padded on its left, where padding stands as in one pass."""
    tokens = sentence(sum(turn.count("1") for turn in turns))
    cache, made, first = KeyValueCache(), [], 0
    for turn in turns:
        mask = torch.tensor([[letter == "1" for letter in turn]])
        x = torch.full((1, len(turn), 16), torch.nan, dtype=torch.float64)
        x[mask] = tokens[first : first + turn.count("1")]
        first += turn.count("1")
        made.append(encoder(x, padding_mask=mask, cache=cache)[mask])
    assert_close(torch.cat(made), encoder(tokens[None])[0], **CLOSE)
