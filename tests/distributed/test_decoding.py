"""A cache that is cut among ranks gives what a whole one gives."""

import pytest
import torch

from posenc import ALiBi, Positional, Rotary, T5Bias, attention
from posenc.distributed import KeyShards

HEADS, KV_HEADS, WIDTH, STEPS = 4, 2, 8, 9


@torch.no_grad()
def decodes(group, scores: str, dtype: torch.dtype, **more) -> float:
    """Token by token with a cache of which each rank holds every world-th; the worst difference."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, heads, STEPS, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    torch.manual_seed(0)
    bias = {"alibi": ALiBi, "t5": T5Bias}[scores](HEADS).to(dtype)
    positional = Positional(queries_keys=Rotary(WIDTH), scores=bias)
    given = {"is_causal": True, "positional": positional, **more}
    if more.get("sinks"):
        given["sinks"] = torch.linspace(-1, 1, HEADS, dtype=dtype)
    whole, errors = attention(q, k, v, **given), []
    encoded = positional.queries_keys[0](q, k)[1]
    for step in range(STEPS):
        own = torch.arange(step + 1)[group.rank() :: group.size()]  # none, at first
        made = attention(
            q[:, :, step : step + 1], encoded[:, :, own], v[:, :, own], **given,
            q_positions=[step], k_positions=own, keys_encoded=True, shards=KeyShards(group),
        )  # fmt: skip
        errors.append((made - whole[:, :, step : step + 1]).abs().max())
    return float(max(errors))


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize(
    ("scores", "more"), [("alibi", {"window": 3}), ("t5", {"softcap": 2.0, "sinks": True})]
)
def test_parts_of_a_cache_merge_to_the_whole(ranks, world, scores, more):
    for dtype, bound in ((torch.float64, 1e-13), (torch.float32, 3e-6)):
        found = ranks.run(world, f"{__name__}:decodes", scores=scores, dtype=dtype, **more)
        assert max(found) < bound


@torch.no_grad()
def at_the_place_of_padding(group) -> float:
    """Real queries, and keys of one rank that stand where these do, the first of them padding."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, HEADS, 4, WIDTH, generator=generator, dtype=torch.float64)
    places, real = torch.tensor([[0, 0, 0, 1]]), torch.tensor([[False, False, True, True]])
    own = torch.tensor([[0, 3], [1, 2], [], []][group.rank()], dtype=torch.int64)
    scores = q[:, :, 2:] @ k.mT * WIDTH**-0.5 + ALiBi(HEADS).table(places[:, 2:], places)
    expected = scores.masked_fill(~real, -torch.inf).softmax(-1) @ v
    found = attention(
        q[:, :, 2:], k[:, :, own], v[:, :, own], positional=Positional(scores=ALiBi(HEADS)),
        q_positions=places[:, 2:], k_positions=places[:, own], padding_mask=real[:, own],
        shards=KeyShards(group),
    )  # fmt: skip
    return float((found - expected).abs().max())


@pytest.mark.parametrize("world", [2, 4])
def test_queries_are_not_taken_for_padding_that_stands_where_they_do(ranks, world):
    assert max(ranks.run(world, f"{__name__}:at_the_place_of_padding")) < 1e-12
