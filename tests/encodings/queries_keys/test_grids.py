"""Encodings of several coordinates, against transformers and against the published formulas."""

import math

import pytest
import torch
from tests.encodings.content import random
from transformers import DINOv3ViTConfig, PixtralVisionConfig, Qwen2VLTextConfig, Qwen3VLTextConfig
from transformers.models.dinov3_vit import modeling_dinov3_vit as dinov3
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.dinov3_vit.modeling_dinov3_vit import apply_rotary_pos_emb as apply_dinov3
from transformers.models.pixtral.modeling_pixtral import PixtralVisionRotaryEmbedding
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
from transformers.models.qwen2_vl.modeling_qwen2_vl import apply_rotary_pos_emb as apply_qwen2_vl
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding

from posenc import AxialRotary, DINOv3Rotary, MultimodalRotary, Rotary
from posenc.frequencies import Geometric
from posenc.positions import grid


def scattered(*shape: int, top: int = 500) -> torch.Tensor:
    return torch.randint(top, shape, generator=torch.Generator().manual_seed(0))


QWENS = {
    "contiguous": (Qwen2VLTextConfig, Qwen2VLRotaryEmbedding),
    "interleaved": (Qwen3VLTextConfig, Qwen3VLTextRotaryEmbedding),
}


# With (16, 24, 24) interleaved, pairs of height and width would fall beyond the last.
@pytest.mark.parametrize(
    ("arrangement", "sections"),
    [
        ("contiguous", (16, 24, 24)),
        ("interleaved", (24, 20, 20)),
        ("interleaved", (16, 24, 24)),
        ("interleaved", (20, 20, 24)),
    ],
)
def test_multimodal_is_qwens_with_three_different_coordinates(arrangement, sections):
    config, module = QWENS[arrangement]
    config = config(
        hidden_size=256,
        num_attention_heads=2,
        head_dim=128,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e6,
            "mrope_section": list(sections),
        },
    )
    positions = scattered(2, 17, 3)
    assert (positions[..., 0] != positions[..., 1]).any()
    cos, sin = module(config)(torch.zeros(1), positions.permute(2, 0, 1))
    rotary = Rotary(Geometric(128, 1e6), arithmetic="float32")
    encoding = MultimodalRotary(rotary, sections, arrangement)
    table = encoding.table(positions)
    assert torch.equal(table[..., 0, :], cos[..., :64])
    assert torch.equal(table[..., 1, :], sin[..., :64])

    q, k = random(2, 4, 17, 128), random(2, 2, 17, 128)
    for got, want in zip(encoding(q, k, positions), apply_qwen2_vl(q, k, cos, sin), strict=True):
        assert torch.equal(got, want)


def test_pixtral_is_transformers():
    config = PixtralVisionConfig(
        hidden_size=64, num_attention_heads=2, head_dim=32, image_size=256, patch_size=16
    )
    positions = grid(9, 13)
    module = PixtralVisionRotaryEmbedding(config)
    cos, sin = module(torch.zeros(1), positions[None].transpose(-1, -2))
    table = AxialRotary(32, 1e4, "pixtral", arithmetic="float32").table(positions)
    assert torch.equal(table[:, 0], cos.reshape(117, 32)[:, :16])
    assert torch.equal(table[:, 1], sin.reshape(117, 32)[:, :16])


def test_dinov3_is_transformers():
    config = DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, image_size=224, patch_size=16)
    module = DINOv3ViTRopePositionEmbedding(config).eval()
    for height, width in ((14, 14), (9, 21)):
        cos, sin = module(torch.zeros(1, 3, 16 * height, 16 * width))
        encoding = DINOv3Rotary(32, (height, width))
        table = encoding.table(grid(height, width))
        torch.testing.assert_close(table[:, 0], cos[:, :16], atol=2e-6, rtol=0)
        torch.testing.assert_close(table[:, 1], sin[:, :16], atol=2e-6, rtol=0)
        q, k = random(1, 2, height * width, 32), random(1, 2, height * width, 32)
        for got, want in zip(
            encoding(q, k, grid(height, width)), apply_dinov3(q, k, cos, sin), strict=True
        ):
            torch.testing.assert_close(got, want, atol=1e-5, rtol=0)


def centers_of_dinov3(height: int, width: int, normalize: str) -> torch.Tensor:
    """The authors' coordinates, patch by patch, in [−1, 1] where both axes are divided alike."""
    sizes = {"separate": (height, width), "min": (min(height, width),) * 2,
             "max": (max(height, width),) * 2}[normalize]  # fmt: skip
    along = [torch.arange(0.5, count, dtype=torch.float64) / size
             for count, size in zip((height, width), sizes, strict=True)]  # fmt: skip
    return 2 * torch.stack(torch.meshgrid(*along, indexing="ij"), dim=-1).flatten(0, 1) - 1


def angles_of_dinov3(centers: torch.Tensor, periods: torch.Tensor) -> torch.Tensor:
    return (2 * math.pi * centers[:, :, None] / periods.double()).flatten(1, 2)


@pytest.mark.parametrize("normalize", ["separate", "min", "max"])
@pytest.mark.parametrize("published", [True, False])
def test_dinov3_of_other_periods_and_coordinates(normalize, published):
    """Periods as a checkpoint has them: rounded to bfloat16, or between a least and a largest."""
    if published:
        periods = (100.0 ** (torch.arange(4).double() / 4)).to(torch.bfloat16)
    else:
        periods = 0.5 * (30.0 / 0.5) ** torch.linspace(0, 1, 4).double()
    encoding = DINOv3Rotary(16, (3, 5), periods=periods, normalize=normalize)
    angles = angles_of_dinov3(centers_of_dinov3(3, 5, normalize), periods)
    table = encoding.table(grid(3, 5), dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], angles.cos(), atol=1e-12, rtol=0)
    torch.testing.assert_close(table[:, 1], angles.sin(), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "changes",
    [{"shift": 0.3}, {"jitter": 1.2}, {"rescale": 2.0}, {"shift": 0.1, "jitter": 2, "rescale": 3}],
    ids=lambda changes: "+".join(changes),
)
def test_dinov3_draws_as_transformers_does(changes):
    """Their function on centers in float64, from the same state of torch's generator."""
    height, width = 5, 3
    encoding = DINOv3Rotary(16, (height, width), **changes)
    torch.manual_seed(11)
    table = encoding.table(grid(height, width), dtype=torch.float64)
    torch.manual_seed(11)
    centers = centers_of_dinov3(height, width, "separate")
    centers = dinov3.augment_patches_center_coordinates(centers, **changes)
    angles = angles_of_dinov3(centers, 100.0 ** (torch.arange(4).double() / 4))
    torch.testing.assert_close(table[:, 0], angles.cos(), atol=1e-12, rtol=0)
    torch.testing.assert_close(table[:, 1], angles.sin(), atol=1e-12, rtol=0)
