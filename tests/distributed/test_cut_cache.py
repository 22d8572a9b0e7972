"""An encoder whose keys and values are cut among ranks decodes as one that has them all."""

import pytest
import torch
from tests.distributed.encoder_cases import DIM, HEADS, built

from posenc import ALiBi, T5Bias
from posenc.distributed import KeyShards, Shards
from posenc.transformer import KeyValueCache

BATCH, LENGTH, PROMPT = 2, 15, 9
REAL = torch.tensor([[False] * 3 + [True] * 12, [True] * 15])
SCORES = {"alibi": ALiBi, "t5": T5Bias}


def content():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, LENGTH, DIM, generator=generator, dtype=torch.float64)


def decoder(scores: str):
    return built(scores=SCORES[scores](HEADS), window=[None, 6]).eval()


@torch.no_grad()
def decodes(group, scores: str, padded: bool, read: str) -> float:
    """A prompt and then a few tokens at a time: the largest difference from one pass."""
    encoder, x = decoder(scores), content()
    real = REAL if padded else torch.ones_like(REAL)
    cache, expected = KeyValueCache(shards=KeyShards(group, run=2)), encoder(x, padding_mask=real)
    prompt, own = x[:, :PROMPT], real[:, :PROMPT]
    if read == "by all":
        made = [encoder(prompt, padding_mask=own, cache=cache)]
    else:
        layout, spread = read.split()
        shards = Shards(group, length=PROMPT, layout=layout, padding_mask=own if padded else None)
        part = encoder(shards.cut(prompt), shards=shards, spread=spread, cache=cache)
        made = [shards.join(part)]
    for begin, end in ((9, 10), (10, 13), (13, 14), (14, 15)):
        mask = real[:, begin:end] if padded else None
        made.append(encoder(x[:, begin:end], padding_mask=mask, cache=cache))
    assert group.size() == 1 or cache.layers[0].length < LENGTH  # nobody keeps all of them
    return float(((torch.cat(made, 1) - expected) * real.unsqueeze(-1)).abs().max())


@pytest.mark.parametrize(
    ("scores", "padded", "read"),
    [
        ("alibi", True, "by all"),
        ("t5", True, "zigzag gather"),
        ("alibi", False, "striped ring"),
        ("t5", True, "contiguous ring"),
    ],
)
def test_decoding_gives_what_one_pass_gives(ranks, scores, padded, read):
    for world in (2, 4):
        given = {"scores": scores, "padded": padded, "read": read}
        assert max(ranks.run(world, f"{__name__}:decodes", **given)) < 1e-12


@torch.no_grad()
def takes_back(group) -> float:
    """Tokens that were guessed are forgotten, rows change places, and one becomes two."""
    encoder, x = decoder("alibi"), content()
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


def test_what_is_kept_can_be_changed(ranks):
    for world in (1, 2, 4):
        assert max(ranks.run(world, f"{__name__}:takes_back")) < 1e-12
