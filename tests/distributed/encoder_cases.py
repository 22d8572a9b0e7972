"""What ranks are asked to do with an encoder."""

from fractions import Fraction

import torch
import torch.distributed as dist
from tests.distributed.cases import BATCH, DESCRIBED, LENGTH

from posenc import ALiBi, Learned, Positional, Rotary, Sinusoidal, T5Bias
from posenc.distributed import Shards
from posenc.positions import Coordinates
from posenc.transformer import Encoder

DIM, HEADS = 16, 4
GIVEN = {**DESCRIBED, "short": {"padding_mask": (torch.arange(LENGTH) < 8).expand(BATCH, -1)}}


def built(dtype=torch.float64, **changes) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(
        tokens=[Sinusoidal(DIM), Learned(DIM, 64)],
        queries_keys=Rotary(DIM // HEADS),
        scores=T5Bias(HEADS),
    )
    arguments = {"positional": positional, "is_causal": True, "kv_heads": 2} | changes
    return Encoder(DIM, HEADS, 2, **arguments).to(dtype)


def content(dtype=torch.float64, width: int = DIM):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, LENGTH, width, generator=generator, dtype=torch.float64).to(dtype)


def encodes(group, described: str, layout: str, spread: str | None, window=None) -> float:
    """An encoder's largest difference from one process, of results and of every gradient."""
    given = GIVEN[described]
    encoder, x, upstream = built(window=window), content(), content()
    real = given.get("padding_mask", torch.ones(BATCH, LENGTH, dtype=torch.bool)).unsqueeze(-1)
    expected = encoder(x, **given)
    gradients = torch.autograd.grad((expected * upstream * real).sum(), list(encoder.parameters()))
    shards = Shards(group, length=LENGTH, layout=layout, **given)
    part = encoder(shards.cut(x), shards=shards, spread=spread)
    found = torch.autograd.grad((part * shards.cut(upstream * real)).sum(),
                                list(encoder.parameters()))  # fmt: skip
    with torch.no_grad():
        errors = [float(((shards.join(part) - expected) * real).abs().max())]
        for own, g in zip(found, gradients, strict=True):
            total = own.contiguous()
            dist.all_reduce(total, group=group)
            errors.append(float((total - g).abs().max() / g.abs().max().clamp(min=1.0)))
    return max(errors)


def at_given_positions(group, layout: str) -> float:
    """The same where positions are the caller's, with gaps between them."""
    positions = torch.stack([torch.arange(LENGTH) * 3, torch.arange(LENGTH) ** 2 // 4]) % 60
    positions = positions.sort(-1).values
    encoder, x = built(), content()
    shards = Shards(group, length=LENGTH, layout=layout)
    part = encoder(shards.cut(x), shards.cut(positions), shards=shards)
    return float((shards.join(part) - encoder(x, positions)).abs().max())


def at_coordinates(group, layout: str, spread: str, long: bool) -> float:
    """The same at seconds, also at such as no exact step holds together."""
    seconds = [[Fraction(n**2, 7 + row) for n in range(LENGTH)] for row in range(BATCH)]
    if long:
        seconds = [[n + Fraction(0.1) / 2**20 * n for n in row] for row in seconds]
        seconds[0][1] = Fraction(3600.1)
    positions = Coordinates(seconds)
    positional = Positional(Sinusoidal(DIM), Rotary(DIM // HEADS), ALiBi(HEADS))
    encoder, x = built(positional=positional, window=100), content()
    shards = Shards(group, length=LENGTH, layout=layout)
    part = encoder(shards.cut(x), shards.cut(positions), shards=shards, spread=spread)
    return float((shards.join(part) - encoder(x, positions)).abs().max())


def dropped(group, layout: str, norm: str) -> list:
    """What a training encoder gives where hidden states are dropped."""
    encoder = built(dropout=0.3, attention_dropout=0.0, embedding_norm=True, norm=norm).train()
    torch.manual_seed(5 if group.rank() == 0 else 6)
    shards = Shards(group, length=LENGTH, layout=layout)
    part = encoder(shards.cut(content()), shards=shards, spread="gather")
    return shards.join(part).tolist()


def refusals(group) -> dict[str, str]:
    """The words of every refusal."""
    shards = Shards(group, length=LENGTH)
    x = shards.cut(content())
    wholly = torch.ones(BATCH, shards.local, dtype=torch.bool)
    made = {
        "weights dropped": lambda: built(dropout=0.5).train()(x, shards=shards),
        "whole rows": lambda: built()(content(), shards=shards),
        "padding": lambda: built()(x, padding_mask=wholly, shards=shards),
    }
    told = {}
    for name, call in made.items():
        try:
            call()
        except ValueError as error:
            told[name] = str(error)
    return told
