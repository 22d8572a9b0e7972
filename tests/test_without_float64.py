"""Devices without float64, as Apple's GPUs are: everything works there, and is as exact."""

import importlib
from pathlib import Path

import pytest
import torch
from tests.played import Played, playing

from posenc import (
    SHAPE,
    ALiBi,
    Learned,
    PoSE,
    Positional,
    Randomized,
    Rotary,
    Sinusoidal,
    T5Bias,
    XPos,
    attention,
)
from posenc.transformer import Encoder, KeyValueCache

CONTRACTS = Path(__file__).parent / "contracts"
FAR = torch.tensor([0, 1, 5, 1_000_003, 9_999_999, 2**40])


def cases() -> list:
    """Every encoding that the contract battery knows."""
    found = []
    for path in sorted(CONTRACTS.glob("test_*.py")):
        module = importlib.import_module(f"tests.contracts.{path.stem}")
        every = {**module.CASES, **getattr(module, "VARIANTS", {})}
        found += [pytest.param(case, id=name) for name, case in every.items()]
    return found


@pytest.fixture
def device():
    with playing() as device:
        yield device


def near(found, expected, bound: float = 1e-6) -> None:
    assert isinstance(found, Played)
    found, expected = found.detach().cpu(), expected.detach()
    assert found.dtype == expected.dtype
    error = float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))
    assert error <= bound, error


@pytest.mark.parametrize("case", cases())
def test_every_encoding_gives_what_it_gives_on_the_cpu(case):
    subject, positions = case.subject(), torch.arange(6)
    content = tuple(x.requires_grad_() for x in subject.content(6))
    learning = [p for p in subject.module.parameters() if p.requires_grad]
    expected = subject.run(content, positions)
    slopes = torch.autograd.grad(
        sum(part.square().sum() for part in expected), [*content, *learning], allow_unused=True
    )
    with playing() as device:
        moved = case.module().to(device)
        given = tuple(x.detach().to(device).requires_grad_() for x in content)
        made = subject.of(moved).run(given, positions.to(device))
        own = [p for p in moved.parameters() if p.requires_grad]
        found = torch.autograd.grad(
            sum(part.square().sum() for part in made), [*given, *own], allow_unused=True
        )
        for one, other in zip(made, expected, strict=True):
            near(one, other)
        for one, other in zip(found, slopes, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                near(one, other, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("encoding", [Rotary(8), Sinusoidal(8), XPos(Rotary(8))], ids=repr)
def test_tables_are_the_same_bits_at_far_positions(device, encoding, dtype):
    positions = FAR if not isinstance(encoding, XPos) else FAR % 1000
    found = encoding.table(positions.to(device), dtype=dtype)
    assert isinstance(found, Played)
    assert found.cpu().equal(encoding.table(positions, dtype=dtype))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"is_causal": True, "window": 3},
        {"document_ids": torch.tensor([[0, 0, 0, 1, 1, 1]]), "is_causal": True},
        {"padding_mask": torch.tensor([[False, False, True, True, True, True]])},
        {"sinks": torch.zeros(4), "softcap": 5.0},
    ],
    ids=lambda more: "-".join(more) or "plain",
)
@pytest.mark.parametrize("bias", [ALiBi, T5Bias])
def test_attention_with_a_bias(device, bias, more):
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, 6, 8), torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
    scores = bias(4)
    positional = Positional(queries_keys=Rotary(8), scores=scores)
    expected = attention(q, k, v, positional=positional, **more)
    moved = {n: x.to(device) if isinstance(x, torch.Tensor) else x for n, x in more.items()}
    positional = Positional(queries_keys=Rotary(8), scores=scores.to(device))
    near(attention(q.to(device), k.to(device), v.to(device), positional=positional, **moved),
         expected)  # fmt: skip


def test_an_encoder_learns_and_decodes(device):
    torch.manual_seed(0)
    positional = Positional(tokens=[Sinusoidal(16), Learned(16, 32)], queries_keys=Rotary(4),
                            scores=T5Bias(4))  # fmt: skip
    encoder = Encoder(16, 4, 2, positional=positional, is_causal=True, kv_heads=2)
    x = torch.randn(2, 6, 16)
    expected = encoder(x)
    gradients = torch.autograd.grad(expected.square().sum(), list(encoder.parameters()))
    encoder.to(device)
    found = encoder(x.to(device))
    near(found, expected, 3e-6)
    own = torch.autograd.grad(found.square().sum(), list(encoder.parameters()))
    for one, other in zip(own, gradients, strict=True):
        near(one, other, 1e-5)
    cache = KeyValueCache()
    with torch.no_grad():
        steps = [encoder.eval()(x[:, i : i + 2].to(device), cache=cache) for i in (0, 2, 4)]
    near(torch.cat(steps, 1), expected, 3e-6)


@pytest.mark.parametrize(
    "remapping",
    [Randomized(64), SHAPE(64), PoSE(64), PoSE(64, chunks=3)],
    ids=lambda r: f"{type(r).__name__}-{getattr(r, 'chunks', '')}",
)
def test_positions_are_drawn_as_on_the_cpu(device, remapping):
    """By a generator of the CPU, as there is none with float64 there."""
    drawn = [
        remapping(torch.arange(6, device=place), generator=torch.Generator().manual_seed(1))
        for place in (device, "cpu")
    ]
    assert isinstance(drawn[0], Played)
    assert drawn[0].tolist() == drawn[1].tolist()
