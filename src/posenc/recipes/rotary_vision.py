"""Models of images, and of images in text: positions have two or three coordinates."""

from collections.abc import Sequence
from fractions import Fraction

from posenc.arguments import check_whole
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.dinov3 import DINOv3Rotary
from posenc.encodings.queries_keys.mixed import RoPEMixed
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.vjepa2 import VJEPA2Rotary
from posenc.frequencies import Geometric


def qwen2_vl(head_dim: int = 128) -> Positional:
    """Qwen2-VL and Qwen2.5-VL, the language part: base 10^6, runs of 16, 24 and 24 pairs.

    Positions are ``[*batch, seq, 3]``: time, height, width; all the same for text.

    Reference:
        Wang et al. 2024, section 2.1 (arXiv:2409.12191).

    Example:
        >>> qwen2_vl().queries_keys[0].sections
        (16, 24, 24)
    """
    rotary = Rotary(Geometric(head_dim, 1e6))
    return Positional(queries_keys=MultimodalRotary(rotary, (16, 24, 24)))


def qwen3_vl(head_dim: int = 128) -> Positional:
    """Qwen3-VL, the language part: base 5·10^6, pairs dealt out to time, height and width.

    Positions are ``[*batch, seq, 3]``: time, height, width; all the same for text.

    Reference:
        Bai et al. 2025, "Qwen3-VL" (arXiv:2511.21631).

    Example:
        >>> qwen3_vl().queries_keys[0].arrangement
        'interleaved'
    """
    rotary = Rotary(Geometric(head_dim, 5e6))
    return Positional(queries_keys=MultimodalRotary(rotary, (24, 20, 20), "interleaved"))


def pixtral(head_dim: int = 64) -> Positional:
    """Pixtral 12B, the image part: even frequencies to rows, odd ones to columns.

    Positions are ``[*batch, seq, 2]``: row and column of a patch.

    Reference:
        Agrawal et al. 2024, section 2.2 (arXiv:2410.07073).

    Example:
        >>> pixtral().queries_keys[0]
        AxialRotary(64, base=10000.0, form='pixtral')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="pixtral"))


def dinov3(head_dim: int = 64, *, grid: tuple[int, int] = (14, 14)) -> Positional:
    """DINOv3: centers of patches between −1 and 1, base 100.

    Positions are ``[*batch, seq, 2]``: row and column of a patch. Class and register tokens do not
    turn; encode the patches alone.

    Args:
        head_dim: 64 in ViT-S, B and L; 128 in the 7B model.
        grid: Rows and columns of patches; (14, 14) for 224 pixels.

    Reference:
        Siméoni et al. 2025, section 3.2 (arXiv:2508.10104).

    Example:
        >>> dinov3(grid=(32, 48)).queries_keys[0]
        DINOv3Rotary(64, grid=(32, 48), base=100.0)
    """
    return Positional(queries_keys=DINOv3Rotary(head_dim, grid))


def rope_vit(head_dim: int = 64) -> Positional:
    """RoPE-ViT, axial: half of the pairs to columns, half to rows, base 100.

    Positions are ``[*batch, seq, 2]``: row and column of a patch. The class token does not turn,
    which is what it does at (0, 0).

    Reference:
        Heo et al. 2024, section 3.2 (arXiv:2403.13298).

    Example:
        >>> rope_vit().queries_keys[0]
        AxialRotary(64, base=100.0, form='rope_vit')
    """
    return Positional(queries_keys=AxialRotary(head_dim))


def rope_vit_mixed(head_dim: int = 64, heads: int = 6, depth: int = 12) -> tuple[Positional, ...]:
    """RoPE-ViT small, mixed: each head of each layer learns where its pairs look, base 10.

    Positions are as for ``rope_vit``; there is one ``Positional`` a layer.

    Args:
        head_dim: Width of a head.
        heads: 6; 12 in the base model, 16 in the large one.
        depth: 12; 24 in the large model.

    Raises:
        ValueError: A size is no whole number from 1 on.

    Reference:
        Heo et al. 2024, section 3.3 (arXiv:2403.13298).

    Example:
        >>> len(rope_vit_mixed()), rope_vit_mixed()[0].queries_keys[0]
        (12, RoPEMixed(64, heads=6, base=10.0))
    """
    check_whole(depth=depth)
    return tuple(Positional(queries_keys=RoPEMixed(head_dim, heads)) for _ in range(depth))


def eva02(
    head_dim: int = 64, *, grid: Sequence[int] = (16, 16), trained: Sequence[int] = (16, 16)
) -> Positional:
    """EVA-02: half of the pairs to rows, half to columns, base 10000, at the trained resolution.

    Positions are ``[*batch, seq, 2]``: row and column of a patch. A larger grid is squeezed into
    the trained one, p · trained / actual. The class token does not turn, as at (0, 0).

    Args:
        head_dim: Width of a head.
        grid: Rows and columns of patches.
        trained: Those of pre-training; (16, 16) for 224 pixels.

    Raises:
        TypeError: A size is no whole number.
        ValueError: They are not two each, from 1 on.

    Reference:
        Fang et al. 2023, "EVA-02" (arXiv:2303.11331); ``RotaryEmbeddingCat`` of timm.

    Example:
        >>> eva02(grid=(32, 32)).queries_keys[0].stretch
        (Fraction(2, 1), Fraction(2, 1))
    """
    if len(grid) != 2 or len(trained) != 2 or min(*grid, *trained) < 1:
        raise ValueError(
            f"grid is {grid} and trained {trained}; both must be (rows, columns), from 1 on."
        )
    stretch = tuple(Fraction(int(now), int(then)) for now, then in zip(grid, trained, strict=True))
    return Positional(queries_keys=AxialRotary(head_dim, form="eva02", stretch=stretch))


def llama4_vision(head_dim: int = 88) -> Positional:
    """Llama 4, the image part: half of the pairs to columns, half to rows, base 10000.

    Positions are ``[*batch, seq, 2]``: row and column of a patch, counted from 1, as
    ``posenc.positions.grid(24, 24) + 1``; (0, 0) for the class token, which comes last.

    Reference:
        ``Llama4VisionRotaryEmbedding`` of transformers.

    Example:
        >>> llama4_vision().queries_keys[0]
        AxialRotary(88, base=10000.0, form='llama4_vision')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="llama4_vision"))


def qwen2_vl_vision(head_dim: int = 80) -> Positional:
    """Qwen2-VL, Qwen2.5-VL and Qwen3-VL, the image part: rows, then columns, base 10000.

    Positions are ``[*batch, seq, 2]``: row and column of a patch. Frames are not told apart.

    Reference:
        Wang et al. 2024, section 2.1 (arXiv:2409.12191); ``Qwen2VLVisionRotaryEmbedding`` of
        transformers.

    Example:
        >>> qwen2_vl_vision().queries_keys[0].form.pairing
        'half'
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="qwen2_vl"))


def gemma4_vision(head_dim: int = 64) -> Positional:
    """Gemma 4, the image part: the first half of a head by columns, the second by rows, base 100.

    Positions are ``[*batch, seq, 2]``: row and column of a patch.

    Reference:
        ``Gemma4VisionRotaryEmbedding`` of transformers.

    Example:
        >>> gemma4_vision().queries_keys[0]
        AxialRotary(64, base=100.0, form='gemma4_vision')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="gemma4_vision"))


def croco(head_dim: int = 64) -> Positional:
    """CroCo v2, DUSt3R, MASt3R and VGGT: the first half of a head by rows, base 100.

    Positions are ``[*batch, seq, 2]``: row and column of a patch.

    Reference:
        Weinzaepfel et al. 2023, "CroCo v2" (arXiv:2211.10408); ``RoPE2D`` of naver/croco.

    Example:
        >>> croco().queries_keys[0]
        AxialRotary(64, base=100.0, form='croco')
    """
    return Positional(queries_keys=AxialRotary(head_dim, form="croco"))


def vjepa2(head_dim: int = 64) -> Positional:
    """V-JEPA 2: frame, row and column, mixed as its checkpoints were trained.

    Positions are ``[*batch, seq, 3]``: pair of frames, row and column of a patch.

    Reference:
        Assran et al. 2025, "V-JEPA 2" (arXiv:2506.09985).

    Example:
        >>> vjepa2().queries_keys[0]
        VJEPA2Rotary(64, base=10000.0)
    """
    return Positional(queries_keys=VJEPA2Rotary(head_dim))
