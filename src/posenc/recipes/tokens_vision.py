"""Models of images and video that add positions to their tokens.

Positions are points of a grid; class tokens and registers that have rows of their own, or rows of
zeros, stand nowhere: ``posenc.positions.prefixed(grid(14, 14), 1)``.
"""

from collections.abc import Sequence
from fractions import Fraction

from posenc.encodings.positional import Positional
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.learned import LevelEmbedding
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.encodings.tokens.peg import PEG


def clip_vision(dim: int = 768, *, size: int = 7) -> Positional:
    """CLIP's image encoder: a class token and a square of patches, 7 × 7 for ViT-B/32.

    Reference: Radford et al. 2021 (arXiv:2103.00020).
    """
    return Positional(tokens=LearnedGrid(dim, (size, size), prefix=1))


def cogvideox_2b(dim: int = 1920, *, stretch: float = 1.875) -> Positional:
    """CogVideoX 2B: sines and cosines of (t, y, x), a quarter of the width for time.

    Args:
        stretch: What rows and columns are divided by.

    Reference: Yang et al. 2024 (arXiv:2408.06072), and ``get_3d_sincos_pos_embed`` of diffusers.
    """
    encoding = AxialSinusoidal(dim, "cogvideox", stretch=(1, stretch, stretch))
    return Positional(tokens=encoding)


def cpvt(dim: int = 192, *, kernel: int = 3) -> Positional:
    """CPVT: one positional encoding generator, behind the first block in the paper's models.

    Reference: Chu et al. 2023 (arXiv:2102.10882).
    """
    return Positional(tokens=PEG(dim, kernel))


def dab_detr(dim: int = 256) -> Positional:
    """DAB-DETR's image features: DETR's sines with n = 20.

    Reference: Liu et al. 2022 (arXiv:2201.12329).
    """
    return Positional(tokens=AxialSinusoidal(dim, "detr", base=20.0))


def deformable_detr(dim: int = 256, *, levels: int = 4) -> Positional:
    """Deformable DETR: sines of the middles of cells, and a vector for each resolution.

    Its positions are those of ``posenc.positions.on_levels`` of masked grids.

    Reference: Zhu et al. 2021 (arXiv:2010.04159).
    """
    return Positional(tokens=LevelEmbedding(AxialSinusoidal(dim, "deformable_detr"), levels))


def deit(dim: int = 768, *, size: int = 14, distilled: bool = True) -> Positional:
    """DeiT: as ViT, with a second token before the patches if it is distilled.

    Reference: Touvron et al. 2021 (arXiv:2012.12877).
    """
    return Positional(tokens=LearnedGrid(dim, (size, size), prefix=1 + distilled))


def detr(dim: int = 256) -> Positional:
    """DETR's image features: sines of normalized rows and columns.

    Its positions are those of ``posenc.positions.masked_grid``. DETR adds them to queries and keys
    of each layer, not to the tokens.

    Reference: Carion et al. 2020, appendix A.4 (arXiv:2005.12872).
    """
    return Positional(tokens=AxialSinusoidal(dim, "detr"))


def dinov2(dim: int = 768, *, size: int = 37) -> Positional:
    """DINOv2: a class token and 37 × 37 patches; registers are added behind, without positions.

    Reference: Oquab et al. 2023 (arXiv:2304.07193).
    """
    return Positional(tokens=LearnedGrid(dim, (size, size), prefix=1))


def mae(dim: int = 768) -> Positional:
    """MAE's encoder and, with ``dim=512``, its decoder; DiT with ``dim=1152``.

    The class token, which stands nowhere, gets zeros.

    Reference: He et al. 2022 (arXiv:2111.06377); Peebles and Xie 2023, "DiT" (arXiv:2212.09748).
    """
    return Positional(tokens=AxialSinusoidal(dim, "mae"))


def pixart(
    dim: int = 1152,
    *,
    size: int | Sequence[int] = 64,
    base_size: int = 64,
    interpolation_scale: int = 2,
) -> Positional:
    """PixArt-α: MAE's form over coordinates · base size / size / interpolation scale.

    Args:
        size: Height and width of the grid in patches, or one number for both. Another grid needs
            an encoding of its own: the model squeezes each into the same square.
        base_size: As in the configuration: ``sample_size / patch_size``.
        interpolation_scale: As in the configuration: 2 for 1024 pixels, 1 for 512.

    Reference: Chen et al. 2023 (arXiv:2310.00426), and ``get_2d_sincos_pos_embed`` of diffusers.
    """
    height, width = (size, size) if isinstance(size, int) else size
    stretch = [Fraction(n, base_size) * interpolation_scale for n in (height, width)]
    return Positional(tokens=AxialSinusoidal(dim, "mae", stretch=stretch))


def rt_detr(dim: int = 256) -> Positional:
    """RT-DETR's encoder: sines and cosines of rows, then of columns.

    Reference: Zhao et al. 2024 (arXiv:2304.08069).
    """
    return Positional(tokens=AxialSinusoidal(dim, "rt_detr"))


def siglip(dim: int = 768, *, size: int = 14) -> Positional:
    """SigLIP's image encoder: 14 × 14 patches and no class token; SigLIP 2 has 16 × 16.

    Reference: Zhai et al. 2023 (arXiv:2303.15343); Tschannen et al. 2025 (arXiv:2502.14786).
    """
    return Positional(tokens=LearnedGrid(dim, (size, size)))


def stable_diffusion_3(dim: int = 1536, *, max_size: int = 192, base_size: int = 64) -> Positional:
    """Stable Diffusion 3: MAE's form over the middle of a large grid, whatever the image's size.

    Positions of h × w patches are ``posenc.positions.grid(h, w, start=((192 - h) // 2,
    (192 - w) // 2))``: a crop of 192 × 192, so the middles of all images stand at one point.

    Args:
        max_size: ``pos_embed_max_size``; 384 in Stable Diffusion 3.5 Medium.
        base_size: ``sample_size / patch_size``.

    Reference: Esser et al. 2024 (arXiv:2403.03206), section 5.3.2, and ``PatchEmbed`` of diffusers.
    """
    return Positional(tokens=AxialSinusoidal(dim, "mae", stretch=Fraction(max_size, base_size)))


def vit(dim: int = 768, *, size: int = 14) -> Positional:
    """ViT: a class token and 14 × 14 patches, each with a learned vector.

    Reference: Dosovitskiy et al. 2021 (arXiv:2010.11929).
    """
    return Positional(tokens=LearnedGrid(dim, (size, size), prefix=1))


def vivit(dim: int = 768, *, frames: int = 16, size: int = 14) -> Positional:
    """ViViT: a class token and 16 × 14 × 14 tubelets, (t, y, x).

    Reference: Arnab et al. 2021 (arXiv:2103.15691).
    """
    return Positional(tokens=LearnedGrid(dim, (frames, size, size), prefix=1))
