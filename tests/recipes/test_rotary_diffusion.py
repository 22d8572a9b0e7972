"""Recipes of generators: the attention of diffusers on random weights, and ours with the recipe."""

from fractions import Fraction

import pytest
import torch
from diffusers.models.attention_processor import Attention, CogVideoXAttnProcessor2_0
from diffusers.models.embeddings import get_3d_rotary_pos_embed
from diffusers.models.transformers.transformer_flux import FluxAttention, FluxPosEmbed
from diffusers.models.transformers.transformer_flux2 import (
    Flux2Attention,
    Flux2PosEmbed,
    Flux2Transformer2DModel,
)
from diffusers.models.transformers.transformer_hunyuan_video import (
    HunyuanVideoAttnProcessor2_0,
    HunyuanVideoRotaryPosEmbed,
)
from diffusers.models.transformers.transformer_ltx import LTXAttention, LTXVideoRotaryPosEmbed
from diffusers.models.transformers.transformer_ltx2 import (
    LTX2Attention,
    LTX2AudioVideoRotaryPosEmbed,
)
from diffusers.models.transformers.transformer_minimax_h3 import (
    MiniMaxH3Attention,
    MiniMaxH3RotaryPosEmbed,
)
from diffusers.models.transformers.transformer_qwenimage import (
    QwenDoubleStreamAttnProcessor2_0,
    QwenEmbedRope,
)
from diffusers.models.transformers.transformer_wan import (
    WanAttention,
    WanAttnProcessor,
    WanRotaryPosEmbed,
)
from diffusers.pipelines.cogvideo.pipeline_cogvideox import get_resize_crop_region_for_grid
from torch import Tensor, nn

from posenc import attention, recipes
from posenc.positions import Coordinates, grid

WIDTH, TEXT = 48, 4


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def projected(module: nn.Module, x: Tensor, *names: str, head_dim: int) -> tuple[Tensor, ...]:
    """Queries, keys and values as the module makes them, normalized over a head or over all."""
    to_q, to_k, to_v, norm_q, norm_k = (getattr(module, name) for name in names)
    q, k, v = (project(x) for project in (to_q, to_k, to_v))
    if norm_q.weight.numel() == head_dim:
        q, k, v = (each.unflatten(-1, (-1, head_dim)) for each in (q, k, v))
        made = norm_q(q), norm_k(k), v
    else:
        made = (each.unflatten(-1, (-1, head_dim)) for each in (norm_q(q), norm_k(k), v))
    return tuple(each.transpose(1, 2) for each in made)


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


@torch.no_grad()
def test_wan_attends_as_diffusers():
    module = shaken(WanAttention(WIDTH, heads=2, dim_head=128, processor=WanAttnProcessor()))
    x = random(1, 30, WIDTH)
    rotary = WanRotaryPosEmbed(128, (1, 2, 2), 32)(torch.zeros(1, 1, 2, 6, 10))
    want = module(x, rotary_emb=rotary)
    parts = projected(module, x, *OF_IMAGE, head_dim=128)
    close(module.to_out[0](attended([parts], recipes.wan(), grid(2, 3, 5))), want)


@torch.no_grad()
def test_ltx_attends_as_diffusers():
    module = shaken(LTXAttention(WIDTH, heads=3, kv_heads=3, dim_head=64))
    x = random(1, 30, WIDTH)
    scale = (torch.tensor([8 / 25]), 32, 32)
    # A base of 10000 makes angles of 15000, which float32 holds to 1e-3.
    theirs = LTXVideoRotaryPosEmbed(192)(x, 2, 3, 5, rope_interpolation_scale=scale)
    want = module(x, image_rotary_emb=theirs)
    parts = projected(module, x, *OF_IMAGE, head_dim=64)
    got = module.to_out[0](attended([parts], recipes.ltx_video(heads=3), grid(2, 3, 5)))
    torch.testing.assert_close(got, want, atol=2e-2 * want.abs().max().item(), rtol=0)


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


@torch.no_grad()
def test_minimax_h3_attends_as_diffusers():
    module = shaken(MiniMaxH3Attention(WIDTH, heads=2, dim_head=128, qk_norm_eps=1e-6))
    x = random(1, 8, WIDTH)
    time = Coordinates(torch.tensor([0, 5, 25, 45]), scale=Fraction(1, 3)) + 6
    row, column = grid(2, 1).unbind(-1)
    places = Coordinates.stack(
        [time[torch.arange(4).repeat_interleave(2)]]
        + [Coordinates(each.repeat(4), scale=Fraction(16)) for each in (row, column)],
        dim=-1,
    )
    want = module(x, MiniMaxH3RotaryPosEmbed()(places.floats()))
    parts = projected(module, x, *OF_IMAGE, head_dim=128)
    close(module.to_out[0](attended([parts], recipes.minimax_h3(), places)), want)


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


@torch.no_grad()
def test_qwen_image_attends_as_diffusers():
    processor = QwenDoubleStreamAttnProcessor2_0()
    module = shaken(
        Attention(
            WIDTH, added_kv_proj_dim=WIDTH, dim_head=128, heads=2, out_dim=256, bias=True,
            context_pre_only=False, processor=processor, qk_norm="rms_norm", eps=1e-6,
        )
    )  # fmt: skip
    image, text = random(1, 15, WIDTH), random(2, TEXT, WIDTH)[:1]
    rope = QwenEmbedRope(10_000, [16, 56, 56], scale_rope=True)
    theirs = rope([(1, 3, 5)], max_txt_seq_len=TEXT, device=torch.device("cpu"))
    want = module(image, encoder_hidden_states=text, encoder_hidden_states_mask=None,
                  image_rotary_emb=theirs)  # fmt: skip
    centered = grid(1, 3, 5) - torch.tensor([0, 2, 3])
    places = torch.cat((2 + torch.arange(TEXT)[:, None].expand(-1, 3), centered))
    parts = [
        projected(module, text, *OF_TEXT, head_dim=128),
        projected(module, image, *OF_IMAGE, head_dim=128),
    ]
    got = attended(parts, recipes.qwen_image(), places)
    close(module.to_out[0](got[:, TEXT:]), want[0])
    close(module.to_add_out(got[:, :TEXT]), want[1])


@torch.no_grad()
def test_hunyuan_video_attends_as_diffusers():
    module = shaken(
        Attention(
            WIDTH, added_kv_proj_dim=WIDTH, dim_head=128, heads=2, out_dim=256, bias=True,
            context_pre_only=False, processor=HunyuanVideoAttnProcessor2_0(), qk_norm="rms_norm",
            eps=1e-6,
        )
    )  # fmt: skip
    video, text = random(1, 30, WIDTH), random(2, TEXT, WIDTH)[:1]
    theirs = HunyuanVideoRotaryPosEmbed(2, 1, [16, 56, 56])(torch.zeros(1, 1, 2, 6, 10))
    want = module(video, encoder_hidden_states=text, image_rotary_emb=theirs)
    places = torch.cat((grid(2, 3, 5), torch.zeros(TEXT, 3, dtype=torch.int64)))
    parts = [
        projected(module, video, *OF_IMAGE, head_dim=128),
        projected(module, text, *OF_TEXT, head_dim=128),
    ]
    got = attended(parts, recipes.hunyuan_video(), places)
    close(module.to_out[0](got[:, :30]), want[0])
    close(module.to_add_out(got[:, 30:]), want[1])


@torch.no_grad()
def test_cogvideox_attends_as_diffusers():
    module = shaken(
        Attention(
            WIDTH, dim_head=64, heads=2, qk_norm="layer_norm", eps=1e-6, bias=True, out_bias=True,
            processor=CogVideoXAttnProcessor2_0(),
        )
    )  # fmt: skip
    video, text = random(1, 30, WIDTH), random(2, TEXT, WIDTH)[:1]
    theirs = get_3d_rotary_pos_embed(64, ((0, 0), (3, 5)), (3, 5), 2)
    want = module(video, encoder_hidden_states=text, image_rotary_emb=theirs)
    places = torch.cat((torch.zeros(TEXT, 3, dtype=torch.int64), grid(2, 3, 5)))
    both = torch.cat((text, video), dim=1)
    parts = projected(module, both, *OF_IMAGE, head_dim=64)
    got = module.to_out[0](attended([parts], recipes.cogvideox(), places))
    close(got[:, TEXT:], want[0])
    close(got[:, :TEXT], want[1])


def test_cogvideox_squeezes_other_sizes_into_the_one_trained_on():
    """A square has all 30 rows and the columns from 8 to 38, whose steps are below 30 / 24."""
    rows, columns = 24, 24
    crop = get_resize_crop_region_for_grid((rows, columns), 45, 30)
    assert crop == ((0, 8), (30, 38))
    cos, sin = get_3d_rotary_pos_embed(64, crop, (rows, columns), 2)
    frame, y, x = grid(2, rows, columns).unbind(-1)
    y = Coordinates(y, scale=Fraction(30, rows))
    x = Coordinates(x, scale=Fraction(38, columns) - Fraction(8, columns - 1)) + 8
    table = (
        recipes.cogvideox()
        .queries_keys[0]
        .table(Coordinates.stack((Coordinates(frame), y, x), dim=-1))
    )
    torch.testing.assert_close(table[:, 0], cos[:, ::2], rtol=0, atol=1e-5)
    torch.testing.assert_close(table[:, 1], sin[:, ::2], rtol=0, atol=1e-5)


def test_defaults_are_those_of_the_models():
    """The sizes of a head, its split and base, from the constructors of diffusers."""
    defaults = Flux2Transformer2DModel.__init__.__wrapped__.__defaults__
    (flux2,) = recipes.flux2().queries_keys
    assert flux2.split in defaults
    assert flux2.base[0] in defaults
    assert flux2.head_dim in defaults
