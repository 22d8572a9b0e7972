"""What ranks are asked to do with an encoder whose cache is cut among them."""

import torch
from tests.distributed.encoder_cases import DIM, HEADS

from posenc import ALiBi, CoPE, Learned, Positional, Rotary, Sinusoidal, T5Bias
from posenc.distributed import KeyShards, Shards
from posenc.transformer import Encoder, KeyValueCache

BATCH, LENGTH, PROMPT = 2, 15, 9
REAL = torch.tensor([[False] * 3 + [True] * 12, [True] * 15])
SCORES = {
    "none": lambda: (),
    "alibi": lambda: ALiBi(HEADS),
    "t5": lambda: T5Bias(HEADS),
    "cope": lambda: CoPE(HEADS, DIM // HEADS, 4),
}


def built(scores: str = "t5", **changes) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(
        tokens=[Sinusoidal(DIM), Learned(DIM, 64)],
        queries_keys=Rotary(DIM // HEADS),
        scores=SCORES[scores](),
    )
    arguments = {"is_causal": True, "kv_heads": 2, "window": [None, 6]} | changes
    return Encoder(DIM, HEADS, 2, positional=positional, **arguments).double().eval()


def content(length: int = LENGTH):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, length, DIM, generator=generator, dtype=torch.float64)


@torch.no_grad()
def decodes(group, scores: str, padded: bool, read: str) -> float:
    """A prompt and then a few tokens at a time: the largest difference from one pass."""
    encoder, x = built(scores), content()
    real = REAL if padded else torch.ones_like(REAL)
    expected = encoder(x, padding_mask=real if padded else None)
    cache = KeyValueCache(shards=KeyShards(group, run=2))
    made = [_prompt(group, encoder, cache, x, real if padded else None, read)]
    for begin, end in ((9, 10), (10, 13), (13, 14), (14, 15)):
        mask = real[:, begin:end] if padded else None
        made.append(encoder(x[:, begin:end], padding_mask=mask, cache=cache))
    keys = cache.layers[0].length
    if group.size() > 1:
        assert keys < LENGTH  # nobody keeps all of them
    return float(((torch.cat(made, 1) - expected) * real.unsqueeze(-1)).abs().max())


def _prompt(group, encoder, cache, x, real, read: str):
    own = None if real is None else real[:, :PROMPT]
    if read == "by all":
        return encoder(x[:, :PROMPT], padding_mask=own, cache=cache)
    layout, spread = read.split()
    shards = Shards(group, length=PROMPT, layout=layout, padding_mask=own)
    return shards.join(encoder(shards.cut(x[:, :PROMPT]), shards=shards, spread=spread,
                               cache=cache))  # fmt: skip


@torch.no_grad()
def takes_back(group) -> float:
    """Tokens that were guessed are forgotten, rows change places, and one becomes two."""
    encoder, x = built("alibi"), content()
    cache = KeyValueCache(shards=KeyShards(group, run=2))
    encoder(x[:, :10], cache=cache)
    cache.crop(7)
    encoder(x[:, 7:9], cache=cache)
    cache.reorder(torch.tensor([1, 0]))
    crossed = encoder(x[[1, 0], 9:11], cache=cache)
    cache.repeat(2)
    doubled = encoder(x[[1, 1, 0, 0], 11:12], cache=cache)
    expected = encoder(x[[1, 0]])
    errors = [crossed - expected[:, 9:11], doubled[::2] - expected[:, 11:12],
              doubled[1::2] - expected[:, 11:12]]  # fmt: skip
    cache.crop(0)
    errors.append(encoder(x[:1, :4], cache=cache) - encoder(x[:1, :4]))
    return max(float(e.abs().max()) for e in errors)


@torch.no_grad()
def moves(group) -> int:
    """Numbers that come to a rank in a step of one token, a layer: none of them is a key."""
    from posenc.distributed import key_shards

    seen, plain = [], key_shards.everyones

    def counting(x, group):
        seen.append(x.numel())
        return plain(x, group)

    encoder, x = built("alibi"), content()
    cache = KeyValueCache(shards=KeyShards(group, run=2))
    encoder(x[:, :14], cache=cache)
    key_shards.everyones = counting
    try:
        encoder(x[:, 14:], cache=cache)
    finally:
        key_shards.everyones = plain
    assert len(seen) == 2
    return seen[0]
