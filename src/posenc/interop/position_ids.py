"""Position ids of multimodal models, as each family of transformers counts them, by its file."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.interop.configurations import read_whole
from posenc.interop.fields import Configuration
from posenc.positions.modalities import After, mixed_modalities

FRAMES_APART = frozenset({
    "cohere_compass", "glm46v", "glm4v", "glm4v_moe", "glm_ocr", "qwen3_5", "qwen3_5_moe",
    "qwen3_vl", "qwen3_vl_moe",
})  # fmt: skip
"""Models that put a time stamp in words before each frame: frames are images of their own."""

SECONDS = frozenset({"qwen2_5_vl"})
"""Models whose frames stand as far apart as the seconds between them."""

OMNI = frozenset({"qwen2_5_omni", "qwen3_omni_moe"})
"""Models that hear too: audio counts as text, and what follows a video stands behind its time."""

MERGED_FRAMES = frozenset({"ernie4_5_vl_moe"})
"""Models that merge frames of videos, as all merge patches."""

PLAIN = frozenset({"qwen2_vl", "paddleocr_vl"})
"""Models whose frames stand one apart."""

IMAGE, VIDEO = 1, 2


def multimodal_positions(
    config: Any,
    token_types: Tensor,
    *,
    image_grids: Sequence[Sequence[int]] | Tensor | None = None,
    video_grids: Sequence[Sequence[int]] | Tensor | None = None,
    seconds: Sequence[float] | Tensor | None = None,
    mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    after: After | None = None,
) -> Int64[Tensor, "*batch seq 3"]:
    """The (t, h, w) that a multimodal model of transformers gives the tokens of its rows.

    As ``get_rope_index`` of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and 3.5, Qwen2.5- and 3-Omni, GLM-4V,
    GLM-OCR, ERNIE 4.5 VL and PaddleOCR-VL gives them, without a loop over tokens, and for packed
    rows too: each document stands as it would alone. ``positions.movedim(-1, 0)`` is what the model
    takes. For packed rows it takes a fourth axis before these, ``packed(document_ids=…)``, by which
    it keeps documents apart.

    Args:
        config: Of the whole model, as ``positional_setup`` takes it.
        token_types: ``[*batch, seq]``: 0 text, 1 image, 2 video, as processors give them in
            ``mm_token_type_ids``; any other counts as text, as audio does.
        image_grids: ``image_grid_thw``: (frames, height, width) in patches of each image.
        video_grids: ``video_grid_thw``, likewise.
        seconds: ``second_per_grid_ts``: between two frames of each video; 1 if not given. Models
            that count frames do not look at it. Qwen2.5-VL rounds positions in the dtype of a
            tensor, and numbers of a list in float64 and then float32; so it is here.
        mask: ``attention_mask``, true where a token is real. Padding stands at 0.
        document_ids: ``[*batch, seq]`` of packed rows.
        after: Where text goes on behind a video: ``"sides"`` or ``"all"``, as of
            ``mixed_modalities``; by default as the installed release of transformers has it.

    Example:
        >>> config = {"model_type": "qwen2_vl", "vision_config": {"spatial_merge_size": 2}}
        >>> types = torch.tensor([[0, 1, 1, 0]])
        >>> multimodal_positions(config, types, image_grids=[(1, 2, 4)]).tolist()
        [[[0, 0, 0], [1, 1, 1], [1, 1, 2], [3, 3, 3]]]
    """
    known = read_whole(config)
    family = known.family.removesuffix("_thinker")
    if family not in FRAMES_APART | SECONDS | OMNI | MERGED_FRAMES | PLAIN:
        raise ValueError(f"How {known.model_type} counts its tokens is not known here.")
    grids = {
        IMAGE: _merged(known, family, image_grids, is_video=False),
        VIDEO: _merged(known, family, video_grids, is_video=True),
    }
    times = {}
    if family in SECONDS | OMNI:
        # A number or a tensor: by its kind the models round.
        apart = [1] * len(grids[VIDEO]) if seconds is None else [*seconds]
        several = zip(grids[VIDEO], apart, strict=True)
        times[VIDEO] = [_times(known, family, grid[0], second) for grid, second in several]
    usual = "all" if family in OMNI else "sides"
    return mixed_modalities(
        token_types,
        grids,
        times=times,
        after=usual if after is None else after,
        mask=mask,
        document_ids=document_ids,
    )


def _merged(
    config: Configuration, family: str, grids: Any, *, is_video: bool
) -> list[tuple[int, int, int]]:
    """The grids in tokens."""
    side = _vision(config, "spatial_merge_size", 2)
    frames = _vision(config, "temporal_merge_size", 2) if family in MERGED_FRAMES else 1
    found, merged = [], frames if is_video else 1
    for t, h, w in [] if grids is None else torch.as_tensor(grids, device="cpu").tolist():
        if h % side or w % side or t % merged:
            raise ValueError(
                f"A grid of {t} × {h} × {w} patches cannot be merged by {merged} × {side} × {side}."
            )
        whole = (t // merged, h // side, w // side)
        apart = is_video and family in FRAMES_APART
        found += [(1, *whole[1:])] * whole[0] if apart else [whole]
    return found


def _vision(config: Configuration, name: str, usual: int) -> int:
    """A size of the model's vision part."""
    for field in ("thinker_config", "vision_config"):
        config = Configuration(config.dictionary(field) or config.values, config.model_type)
    return config.values.get(name, usual)


def _times(config: Configuration, family: str, frames: int, second: Any) -> Tensor:
    """Where the frames of a video stand, rounded as the models round."""
    index = torch.arange(frames, device="cpu")
    second = second.cpu() if isinstance(second, Tensor) else second
    if family in SECONDS:
        interval = _vision(config, "tokens_per_second", 4) * second
        if isinstance(interval, Tensor | int):  # in the dtype of a tensor
            return (index * interval).long()
        return (index.float() * float(interval)).long()
    values = config.dictionary("thinker_config") or config.values
    apart = torch.tensor(float(second), dtype=torch.float32, device="cpu")
    return (index * apart * values.get("position_id_per_seconds", 25)).long()
