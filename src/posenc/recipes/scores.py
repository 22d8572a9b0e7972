"""Models that change attention scores by position."""

from posenc.encodings.positional import Positional
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.scores.deberta import DeBERTa
from posenc.encodings.scores.decomposed import DecomposedRelative
from posenc.encodings.scores.swin import SwinBias, SwinV2Bias
from posenc.encodings.scores.t5 import T5Bias
from posenc.encodings.scores.transformer_xl import TransformerXL


def beit(heads: int = 12, *, window: int = 14) -> Positional:
    """BEiT: a table of biases for the whole image, and three rows for its class token.

    Its positions are ``posenc.positions.prefixed(grid(14, 14))``; a checkpoint's
    ``relative_position_bias_table`` is the weight, in each layer its own.

    Reference: Bao et al. 2022 (arXiv:2106.08254).
    """
    return Positional(scores=SwinBias(heads, window, class_token=True))


def bloom(heads: int = 32) -> Positional:
    """BLOOM: ALiBi alone.

    Reference: Le Scao et al. 2022 (arXiv:2211.05100).
    """
    return Positional(scores=ALiBi(heads, is_causal=True))


def conformer(heads: int = 16, head_dim: int = 64) -> Positional:
    """Conformer of speech, as wav2vec 2.0 Conformer, Parakeet and FastSpeech 2: Transformer-XL's.

    It looks both ways, which ``TransformerXL`` does too. A checkpoint's ``pos_bias_u`` and
    ``pos_bias_v`` are u and v. Its sinusoids have sine and cosine in turn, so ``linear_pos.weight``
    has to be given as ``weight[:, [*range(0, dim, 2), *range(1, dim, 2)]]``.

    Reference: Gulati et al. 2020, "Conformer", section 2.1 (arXiv:2005.08100).
    """
    return Positional(scores=TransformerXL(heads, head_dim))


def deberta_v3(heads: int = 12, head_dim: int = 64) -> Positional:
    """DeBERTa V2 and V3: content to position and position to content, 256 logarithmic buckets.

    Its scale of scores is part of it; a checkpoint is taken over with ``scores[0].load``.

    Reference: He et al. 2021 (arXiv:2111.09543); the sizes are those of V3 base.
    """
    return Positional(scores=DeBERTa(heads, head_dim, buckets=256, max_distance=512))


def mpt(heads: int = 32, *, alibi_bias_max: float = 8.0) -> Positional:
    """MPT: ALiBi alone, with the authors' slopes.

    Args:
        heads: 32 in the 7B model, 64 in the 30B model.
        alibi_bias_max: As the configuration has it; 8 in the published models.

    Reference: MosaicML 2023, ``alibi_bias_max: 8`` in the published configurations.
    """
    return Positional(scores=ALiBi(heads, is_causal=True, alibi_bias_max=alibi_bias_max))


def sam(heads: int = 12, head_dim: int = 64, *, size: int = 14) -> Positional:
    """SAM's image encoder: decomposed relative positions, 14 in windows, 64 in global layers.

    Its positions are points of a grid. The embedding that it adds to patches is not part of it.

    Reference: Kirillov et al. 2023, "Segment Anything" (arXiv:2304.02643).
    """
    return Positional(scores=DecomposedRelative(heads, head_dim, size, std=0.0))


def swin(heads: int = 3, *, window: int = 7) -> Positional:
    """Swin: a table of biases for the displacements in a window, in each layer its own.

    Reference: Liu et al. 2021 (arXiv:2103.14030).
    """
    return Positional(scores=SwinBias(heads, window))


def swin_v2(heads: int = 3, *, window: int = 8, pretrained_window: int | None = None) -> Positional:
    """Swin V2: a network of log-spaced displacements; its attention is of cosines.

    Reference: Liu et al. 2022 (arXiv:2111.09883).
    """
    return Positional(scores=SwinV2Bias(heads, window, pretrained_window=pretrained_window))


def t5(heads: int = 12, *, decoder: bool = False) -> Positional:
    """T5: 32 buckets of distances to 128, shared by all layers; its attention has scale 1.

    Reference: Raffel et al. 2020 (arXiv:1910.10683); the sizes are those of T5 base.
    """
    return Positional(scores=T5Bias(heads, bidirectional=not decoder))


def transformer_xl(heads: int = 10, head_dim: int = 41, dim: int = 410) -> Positional:
    """Transformer-XL: relative sinusoids and two learned preferences a head.

    Reference: Dai et al. 2019 (arXiv:1901.02860); the sizes are those of its WikiText-103 base
    model.
    """
    return Positional(scores=TransformerXL(heads, head_dim, dim))
