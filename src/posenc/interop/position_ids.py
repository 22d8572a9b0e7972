"""Position ids of multimodal models, as each family of transformers counts them, by its file."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.interop.configurations import read_whole
from posenc.positions.modalities import After, mixed_modalities

FAMILIES = {
    # A time stamp in words stands before each frame: frames are images of their own.
    **dict.fromkeys(
        (
            "cohere_compass", "glm46v", "glm4v", "glm4v_moe", "glm_ocr", "qwen3_5", "qwen3_5_moe",
            "qwen3_vl", "qwen3_vl_moe",
        ),
        "frames apart",
    ),
    # Frames stand as far apart as the seconds between them.
    "qwen2_5_vl": "seconds",
    # These hear too: audio counts as text, and what follows a video stands behind its time.
    **dict.fromkeys(("qwen2_5_omni", "qwen3_omni_moe"), "hears"),
    # Frames are merged, as all merge patches.
    "ernie4_5_vl_moe": "frames merged",
    # Frames stand one apart.
    **dict.fromkeys(("qwen2_vl", "paddleocr_vl"), "plain"),
}  # fmt: skip
"""How the families count the frames of videos."""

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
    way = FAMILIES.get(known.family.removesuffix("_thinker"))
    if way is None:
        raise ValueError(f"How {known.model_type} counts its tokens is not known here.")
    whole = known.dictionary("thinker_config") or known.values
    vision = whole.get("vision_config") or whole
    side = vision.get("spatial_merge_size", 2)
    frames = vision.get("temporal_merge_size", 2) if way == "frames merged" else 1
    grids = {IMAGE: _merged(image_grids, 1, side), VIDEO: _merged(video_grids, frames, side)}
    if way == "frames apart":
        grids[VIDEO] = [(1, height, width) for t, height, width in grids[VIDEO] for _ in range(t)]
    timed = {
        "seconds": (_spread, vision.get("tokens_per_second", 4)),
        "hears": (_heard, whole.get("position_id_per_seconds", 25)),
    }
    times = {}
    if way in timed:
        place, rate = timed[way]
        # A number or a tensor: by its kind the models round.
        apart = [1] * len(grids[VIDEO]) if seconds is None else [*seconds]
        several = zip(grids[VIDEO], apart, strict=True)
        times[VIDEO] = [place(grid[0], second, rate) for grid, second in several]
    return mixed_modalities(
        token_types,
        grids,
        times=times,
        after=after or ("all" if way == "hears" else "sides"),
        mask=mask,
        document_ids=document_ids,
    )


def _merged(grids: Any, frames: int, side: int) -> list[tuple[int, int, int]]:
    """Grids of patches in tokens."""
    found = []
    for t, h, w in [] if grids is None else torch.as_tensor(grids, device="cpu").tolist():
        if h % side or w % side or t % frames:
            raise ValueError(f"{t} × {h} × {w} patches cannot be merged by {frames} × {side}².")
        found.append((t // frames, h // side, w // side))
    return found


def _spread(frames: int, second: Any, rate: int) -> Tensor:
    """Where the frames of a video stand, rounded as Qwen2.5-VL rounds."""
    index = torch.arange(frames, device="cpu")
    interval = rate * (second.cpu() if isinstance(second, Tensor) else second)
    if isinstance(interval, Tensor | int):  # in the dtype of a tensor
        return (index * interval).long()
    return (index.float() * float(interval)).long()


def _heard(frames: int, second: Any, rate: int) -> Tensor:
    """The same as Omni models round."""
    apart = torch.tensor(float(second), dtype=torch.float32, device="cpu")
    return (torch.arange(frames, device="cpu") * apart * rate).long()
