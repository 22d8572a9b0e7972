"""Models of images, and of images in text.

Positions are ``[*batch, seq, 2]``: row and column of a patch; or ``[*batch, seq, 3]``: time, height
and width, all the same for text. A class token that does not turn stands at 0 along both axes.
"""

from collections.abc import Sequence
from fractions import Fraction

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.dinov3 import DINOv3Rotary
from posenc.encodings.queries_keys.learned import RoPEMixed
from posenc.encodings.queries_keys.multimodal import MultimodalRotary, VJEPA2Rotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Geometric


def qwen2_vl(head_dim: int = 128) -> Positional:
    """Qwen2-VL and Qwen2.5-VL, the language part: base 10^6, runs of 16, 24 and 24 pairs.

    Reference: Wang et al. 2024, section 2.1 (arXiv:2409.12191).
    """
    rotary = Rotary(Geometric(head_dim, 1e6))
    return Positional(queries_keys=MultimodalRotary(rotary, (16, 24, 24)))


def qwen3_vl(head_dim: int = 128) -> Positional:
    """Qwen3-VL, the language part: base 5·10^6, pairs dealt out to time, height and width.

    Reference: Bai et al. 2025, "Qwen3-VL" (arXiv:2511.21631).
    """
    rotary = Rotary(Geometric(head_dim, 5e6))
    return Positional(queries_keys=MultimodalRotary(rotary, (24, 20, 20), "interleaved"))


def pixtral(head_dim: int = 64) -> Positional:
    """Pixtral 12B, the image part: even frequencies to rows, odd ones to columns.

    Reference: Agrawal et al. 2024, section 2.2 (arXiv:2410.07073).
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="pixtral"))


def dinov3(head_dim: int = 64, *, grid: tuple[int, int] = (14, 14)) -> Positional:
    """DINOv3: centers of patches between −1 and 1, base 100; heads of 128 in the 7B model.

    Class and register tokens do not turn; encode the patches alone. The grid is that of 224 pixels.

    Reference: Siméoni et al. 2025, section 3.2 (arXiv:2508.10104).
    """
    return Positional(queries_keys=DINOv3Rotary(head_dim, grid))


def rope_vit(head_dim: int = 64) -> Positional:
    """RoPE-ViT, axial: half of the pairs to columns, half to rows, base 100.

    Reference: Heo et al. 2024, section 3.2 (arXiv:2403.13298).
    """
    return Positional(queries_keys=AxialRotary(head_dim))


def rope_vit_mixed(head_dim: int = 64, heads: int = 6, depth: int = 12) -> tuple[Positional, ...]:
    """RoPE-ViT small, mixed: each head of each layer learns where its pairs look, base 10.

    The base model has 12 heads, the large one 16 and a depth of 24.

    Reference: Heo et al. 2024, section 3.3 (arXiv:2403.13298).
    """
    return tuple(Positional(queries_keys=RoPEMixed(head_dim, heads)) for _ in range(depth))


def eva02(
    head_dim: int = 64, *, grid: Sequence[int] = (16, 16), trained: Sequence[int] = (16, 16)
) -> Positional:
    """EVA-02: half of the pairs to rows, half to columns, base 10000, at the trained resolution.

    A larger grid is squeezed into that of pre-training, p · trained / grid.

    Reference: Fang et al. 2023, "EVA-02" (arXiv:2303.11331); ``RotaryEmbeddingCat`` of timm.
    """
    stretch = tuple(Fraction(now, then) for now, then in zip(grid, trained, strict=True))
    return Positional(queries_keys=AxialRotary(head_dim, form="eva02", stretch=stretch))


def llama4_vision(head_dim: int = 88) -> Positional:
    """Llama 4, the image part: half of the pairs to columns, half to rows, base 10000.

    Patches count from 1, ``posenc.positions.grid(24, 24) + 1``; the class token comes last.

    Reference: ``Llama4VisionRotaryEmbedding`` of transformers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="llama4_vision"))


def qwen2_vl_vision(head_dim: int = 80) -> Positional:
    """Qwen2-VL, Qwen2.5-VL and Qwen3-VL, the image part: rows, then columns, base 10000.

    Reference: Wang et al. 2024, section 2.1 (arXiv:2409.12191); ``Qwen2VLVisionRotaryEmbedding`` of
    transformers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="qwen2_vl"))


def gemma4_vision(head_dim: int = 64) -> Positional:
    """Gemma 4, the image part: the first half of a head by columns, the second by rows, base 100.

    Reference: ``Gemma4VisionRotaryEmbedding`` of transformers.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="gemma4_vision"))


def croco(head_dim: int = 64) -> Positional:
    """CroCo v2, DUSt3R, MASt3R and VGGT: the first half of a head by rows, base 100.

    Reference: Weinzaepfel et al. 2023, "CroCo v2" (arXiv:2211.10408); ``RoPE2D`` of naver/croco.
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="croco"))


def vjepa2(head_dim: int = 64) -> Positional:
    """V-JEPA 2: frame, row and column, mixed as its checkpoints were trained.

    Positions are ``[*batch, seq, 3]``: pair of frames, row and column of a patch.

    Reference: Assran et al. 2025, "V-JEPA 2" (arXiv:2506.09985).
    """
    return Positional(queries_keys=VJEPA2Rotary(head_dim))
