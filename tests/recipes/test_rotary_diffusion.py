"""Recipes of generators: the attention of diffusers on random weights, and ours with the recipe."""

from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import get_3d_rotary_pos_embed
from diffusers.models.transformers.transformer_flux import FluxAttention, FluxPosEmbed
from diffusers.models.transformers.transformer_flux2 import (
    Flux2Attention,
    Flux2PosEmbed,
)
from diffusers.models.transformers.transformer_ltx2 import (
    LTX2Attention,
    LTX2AudioVideoRotaryPosEmbed,
)
from diffusers.pipelines.cogvideo.pipeline_cogvideox import get_resize_crop_region_for_grid
from torch import Tensor, nn

from posenc import attention, recipes
from posenc.positions import Coordinates, grid

WIDTH, TEXT = 48, 4


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def projected(module: nn.Module, x: Tensor, *names: str, head_dim: int) -> tuple[Tensor, ...]:
    """Queries, keys and values as the module makes them, normalized over a head."""
    to_q, to_k, to_v, norm_q, norm_k = (getattr(module, name) for name in names)
    q, k, v = (project(x).unflatten(-1, (-1, head_dim)) for project in (to_q, to_k, to_v))
    return tuple(each.transpose(1, 2) for each in (norm_q(q), norm_k(k), v))


OF_IMAGE = ("to_q", "to_k", "to_v", "norm_q", "norm_k")
OF_TEXT = ("add_q_proj", "add_k_proj", "add_v_proj", "norm_added_q", "norm_added_k")


def attended(parts, recipe, positions: Tensor) -> Tensor:
    """Attention of all tokens with a recipe, heads joined again."""
    q, k, v = (torch.cat(each, dim=2) for each in zip(*parts, strict=True))
    places = {"q_positions": positions[None], "k_positions": positions[None]}
    return attention(q, k, v, positional=recipe, **places).transpose(1, 2).flatten(2)


def shaken(module: nn.Module) -> nn.Module:
    """Random scales of the norms too, which begin at 1."""
    torch.manual_seed(5)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def close(got: Tensor, want: Tensor) -> None:
    """Rotations differ by 4e-5 at most: angles below 60 with a few roundings of float32."""
    torch.testing.assert_close(got, want, atol=2e-4 * want.abs().max().item(), rtol=0)


@pytest.mark.parametrize(("kind", "pairing"), [("split", "half"), ("interleaved", "interleaved")])
@torch.no_grad()
def test_ltx2_attends_to_sound_and_to_video_as_diffusers(kind, pairing):
    """Seconds at the middle of what a latent frame covers; video asks, sound is asked."""
    said = {"rope_type": kind, "num_attention_heads": 3}
    sound = LTX2AudioVideoRotaryPosEmbed(192, modality="audio", scale_factors=(4,), **said)
    video = LTX2AudioVideoRotaryPosEmbed(192, **said)
    heard = sound.prepare_audio_coords(1, 10, torch.device("cpu"))
    seen = video.prepare_video_coords(1, 4, 1, 2, torch.device("cpu"))[:, :1]
    module = shaken(LTX2Attention(WIDTH, heads=3, kv_heads=3, dim_head=64, rope_type=kind))
    x, y = random(1, 8, WIDTH), random(1, 10, WIDTH)
    want = module(x, y, query_rotary_emb=video(seen), key_rotary_emb=sound(heard))

    def middles(count: int, factor: int, step: Fraction) -> Coordinates:
        ends = [(factor * i - factor + 1).clamp(min=0) for i in torch.arange(count + 1).split(1)]
        ends = torch.cat(ends)
        return Coordinates((ends[1:] + ends[:-1]).unsqueeze(-1), scale=step / 2)

    frames = middles(4, 8, Fraction(1, 24))[torch.arange(4).repeat_interleave(2)]
    q, k, v = (norm(to(each)) for norm, to, each in (
        (module.norm_q, module.to_q, x), (module.norm_k, module.to_k, y),
        (nn.Identity(), module.to_v, y),
    ))  # fmt: skip
    q, k, v = (each.unflatten(-1, (3, 64)).transpose(1, 2) for each in (q, k, v))
    recipe = recipes.ltx2_audio(heads=3, pairing=pairing)
    places = {"q_positions": frames[None], "k_positions": middles(10, 4, Fraction(1, 100))[None]}
    made = attention(q, k, v, positional=recipe, **places).transpose(1, 2).flatten(2)
    # As of LTX-Video: angles of 15000, which float32 holds to 1e-3.
    torch.testing.assert_close(
        module.to_out[0](made), want, atol=2e-2 * want.abs().max().item(), rtol=0
    )


TWO_STREAMS = {
    "flux": (FluxAttention, recipes.flux(), FluxPosEmbed(10_000, [16, 56, 56]), 3),
    "flux2": (Flux2Attention, recipes.flux2(), Flux2PosEmbed(2000, [32] * 4), 4),
}


@pytest.mark.parametrize("name", TWO_STREAMS)
@torch.no_grad()
def test_flux_attends_as_diffusers(name):
    """Text and image are projected apart, joined with the text first, and attended to together."""
    kind, recipe, rotary, axes = TWO_STREAMS[name]
    module = shaken(kind(WIDTH, heads=2, dim_head=128, added_kv_proj_dim=WIDTH))
    image, text = random(1, 15, WIDTH), random(2, TEXT, WIDTH)[:1]
    places = torch.zeros(TEXT + 15, axes, dtype=torch.int64)
    places[TEXT:, 1:3] = grid(3, 5)
    if axes == 4:
        places[:TEXT, 3] = torch.arange(TEXT)
    want = module(image, text, image_rotary_emb=rotary(places))
    parts = [
        projected(module, text, *OF_TEXT, head_dim=128),
        projected(module, image, *OF_IMAGE, head_dim=128),
    ]
    got = attended(parts, recipe, places)
    close(module.to_out[0](got[:, TEXT:]), want[0])
    close(module.to_add_out(got[:, :TEXT]), want[1])


def test_cogvideox_squeezes_other_sizes_into_the_one_trained_on():
    """A square has all 30 rows and the columns from 8 to 38, whose steps are below 30 / 24."""
    rows, columns = 24, 24
    crop = get_resize_crop_region_for_grid((rows, columns), 45, 30)
    assert crop == ((0, 8), (30, 38))
    cos, sin = get_3d_rotary_pos_embed(64, crop, (rows, columns), 2)
    frame, y, x = grid(2, rows, columns).unbind(-1)
    y = Coordinates(y, scale=Fraction(30, rows))
    x = Coordinates(x, scale=Fraction(38, columns) - Fraction(8, columns - 1)) + 8
    (encoding,) = recipes.cogvideox().queries_keys
    table = encoding.table(Coordinates.stack((Coordinates(frame), y, x), dim=-1))
    torch.testing.assert_close(table[:, 0], cos[:, ::2], rtol=0, atol=1e-5)
    torch.testing.assert_close(table[:, 1], sin[:, ::2], rtol=0, atol=1e-5)
