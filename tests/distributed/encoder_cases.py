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


def built(scores=None, **changes) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(
        tokens=[Sinusoidal(DIM), Learned(DIM, 64)],
        queries_keys=Rotary(DIM // HEADS),
        scores=T5Bias(HEADS) if scores is None else scores,
    )
    arguments = {"positional": positional, "is_causal": True, "kv_heads": 2} | changes
    return Encoder(DIM, HEADS, 2, **arguments).double()


def content(width: int = DIM):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, LENGTH, width, generator=generator, dtype=torch.float64)


def encodes(group, described: str, layout: str, spread: str | None, window=None) -> float:
    """An encoder's largest difference from one process, of results and of every gradient."""
    given = GIVEN[described]
    encoder, x, upstream = built(window=window), content(), content()
    real = given.get("padding_mask", torch.ones(BATCH, LENGTH, dtype=torch.bool)).unsqueeze(-1)
    expected, learning = encoder(x, **given), list(encoder.parameters())
    gradients = torch.autograd.grad((expected * upstream * real).sum(), learning)
    shards = Shards(group, length=LENGTH, layout=layout, **given)
    part = encoder(shards.cut(x), shards=shards, spread=spread)
    found = torch.autograd.grad((part * shards.cut(upstream * real)).sum(), learning)
    with torch.no_grad():
        errors = [float(((shards.join(part) - expected) * real).abs().max())]
        for own, g in zip(found, gradients, strict=True):
            total = own.contiguous()
            dist.all_reduce(total, group=group)
            errors.append(float((total - g).abs().max() / g.abs().max().clamp(min=1.0)))
    return max(errors)


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


def refusal(group) -> str:
    """The words of one: weights would be dropped on other pairs with other cuts."""
    shards = Shards(group, length=LENGTH)
    try:
        built(dropout=0.5).train()(shards.cut(content()), shards=shards)
    except ValueError as error:
        return str(error)
    return ""
