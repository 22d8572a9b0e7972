"""The encoder as a whole: what order does to it, its dtypes, its gradients."""

import itertools
from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from posenc import (
    PEG,
    ALiBi,
    AxialLearned,
    AxialSinusoidal,
    Learned,
    LearnedGrid,
    Positional,
    Rotary,
    Sinusoidal,
)
from posenc.positions import grid
from posenc.transformer import Encoder, TokenEmbedding

LION, KILLS, TIGER = 0, 1, 2


def encoder_with(positional, **arguments):
    return Encoder(16, 4, 2, positional=positional, **arguments).double().eval()


def both_sentences(positional):
    """ "lion kills tiger" and "tiger kills lion", encoded."""
    embed, encoder = TokenEmbedding(3, 16).double(), encoder_with(positional)
    return [encoder(embed(torch.tensor([w]))) for w in ([LION, KILLS, TIGER], [TIGER, KILLS, LION])]


def test_without_an_encoding_order_is_invisible():
    one, other = both_sentences(Positional())
    assert_close(other, one[:, [2, 1, 0]], atol=1e-12, rtol=0)
    encoder, x = encoder_with(Positional()), torch.randn(2, 4, 16, dtype=torch.float64)
    for order in itertools.permutations(range(4)):
        assert_close(encoder(x[:, order]), encoder(x)[:, order], atol=1e-12, rtol=0)


def test_with_an_encoding_the_lion_that_kills_is_another_lion(placed):
    # A bias of the distance cannot tell a sentence from its mirror image: it needs another order.
    encoder, x = encoder_with(placed), torch.randn(1, 4, 16, dtype=torch.float64)
    order = [1, 0, 3, 2] if not list(placed.scores) else [0, 2, 1, 3]
    assert (encoder(x[:, order]) - encoder(x)[:, order]).abs().max() > 1e-4
    if list(placed.tokens) or list(placed.queries_keys):
        one, other = both_sentences(placed)
        assert (other - one[:, [2, 1, 0]]).abs().max() > 1e-4


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("embedding_norm", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_stages_are_its_forward(positional, norm, embedding_norm, causal):
    encoder = encoder_with(positional, norm=norm, embedding_norm=embedding_norm, is_causal=causal)
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    mask = torch.tensor([[False, False, True, True, True, True], [True] * 6])
    stages = encoder.stages(x, padding_mask=mask)
    assert_close(stages.output, encoder(x, padding_mask=mask), atol=1e-12, rtol=0)
    assert len(stages.blocks) == 2
    assert stages.positions.tolist() == [[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]


def rounding(encoder: Encoder, x: torch.Tensor, start: int) -> float:
    """How far a pass in the dtype of ``x`` is from one in float64 by the same weights, in eps."""
    positions = torch.arange(start, start + x.shape[1])
    narrow = deepcopy(encoder).to(x.dtype)
    with torch.no_grad():
        out, want = narrow(x, positions), deepcopy(narrow).double()(x.double(), positions)
    assert out.dtype == x.dtype
    return (out.double() - want).abs().max().item() / torch.finfo(x.dtype).eps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_dtype_of_x_stays_and_rounds_as_little_as_its_operations(positional, dtype):
    """Two layers: a few roundings, near and where positions in bfloat16 would count in eights."""
    encoder = Encoder(16, 4, 2, positional=positional, is_causal=True).eval()
    x = torch.randn(2, 6, 16).to(dtype)
    # Learned ones end at 64, and factors that grow with the position leave float16.
    names = {type(e).__name__ for e in (*positional.tokens, *positional.queries_keys)}
    limited = names & {"Learned", "XPos"}
    for start in (0,) if limited else (0, 1500):
        assert rounding(encoder, x, start) < 8


@pytest.mark.parametrize(
    ("positional", "told"),
    [
        (Positional(Sinusoidal(8)), "Sinusoidal was built with dim=8; this encoder has dim 16"),
        (Positional(scores=ALiBi(8)), "ALiBi was built with heads=8; this encoder has heads 4"),
        (Positional(Learned(16, 9, batch_first=False)), "Learned was built with batch_first=False"),
        (Positional(queries_keys=Rotary(4, heads_first=False)), "heads_first=False"),
    ],
)
def test_an_encoding_of_another_size(positional, told):
    with pytest.raises(ValueError, match=told):
        Encoder(16, 4, 1, positional=positional)


TOKENS = {
    "sines": lambda: AxialSinusoidal(16),
    "learned": lambda: LearnedGrid(16, (3, 3), std=1.0),
    "axes": lambda: AxialLearned(16, (3, 3), std=1.0),
    "peg": lambda: PEG(16),
}


@pytest.mark.parametrize("behind", [True, False], ids=["behind", "before"])
@pytest.mark.parametrize("other", TOKENS.values(), ids=TOKENS)
def test_what_one_encoding_writes_into_padding_the_next_does_not_read(other, behind):
    """An image of 2 × 2 in a batch padded to 3 × 3."""
    points, x = grid(3, 3), torch.randn(1, 9, 16, dtype=torch.float64)
    real = (points < 2).all(-1)
    tokens = (other(), PEG(16)) if behind else (PEG(16), other())
    encoder = encoder_with(Positional(tokens))
    for run in (encoder, lambda *given, **named: encoder.stages(*given, **named).output):
        alone = run(x[:, real], points[real][None])
        for left in (0.0, float("nan")):
            padded = x.masked_fill(~real[None, :, None], left)
            made = run(padded, points[None], padding_mask=real[None])
            assert_close(made[:, real], alone)


@pytest.mark.parametrize("backend", ["strided", "dense", "explicit"])
def test_a_backend_that_is_insisted_on_gives_the_same(backend):
    positional = Positional(scores=ALiBi(4))
    encoder, x = encoder_with(positional, is_causal=True), torch.randn(2, 5, 16).double()
    chosen = encoder_with(positional, is_causal=True, backend=backend)
    chosen.load_state_dict(encoder.state_dict())
    assert_close(chosen(x), encoder(x), atol=1e-12, rtol=0)


def test_a_mask_of_one_call_hides_what_it_hides():
    encoder = encoder_with(Positional(queries_keys=Rotary(4)), is_causal=True)
    x, seen = torch.randn(1, 5, 16).double(), torch.ones(5, 5, dtype=torch.bool)
    seen[2:, :2] = False
    made = encoder(x, attn_mask=seen)
    assert_close(made[:, 2:], encoder(x[:, 2:]), atol=1e-12, rtol=0)
    assert_close(encoder.stages(x, attn_mask=seen).output, made, atol=1e-12, rtol=0)


def test_a_training_step_reaches_every_parameter(positional):
    encoder = Encoder(16, 4, 2, positional=positional, dropout=0.1, norm="pre")
    loss = encoder(torch.randn(4, 6, 16)).square().mean()
    loss.backward()
    assert all(weight.grad is not None for weight in encoder.parameters())
