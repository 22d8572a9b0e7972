"""Every recipe: all of its encodings, of the first layers where those differ."""

from functools import partial
from inspect import signature
from typing import Any

import torch
from tests.goldens.encodings import driven
from tests.goldens.held import settled
from torch import Tensor

from posenc import Positional, positions, recipes

SEQ = 8
MANY = dict.fromkeys(("gemma3", "llama4", "modernbert", "smollm3"), 6) | {"rope_vit_mixed": 2}
VIDEOS = ("cogvideox", "cogvideox_2b", "flux", "hunyuan_video", "ltx2", "ltx_video", "minimax_h3",
          "qwen_image", "vjepa2", "wan")  # fmt: skip
IMAGES = ("cpvt", "croco", "dinov3", "eva02", "gemma4_vision", "llama4_vision", "mae", "pixart",
          "pixtral", "qwen2_vl_vision", "rope_vit", "rope_vit_mixed", "rt_detr", "sam", "siglip",
          "stable_diffusion_3", "swin", "swin_v2")  # fmt: skip
GRIDS = dict.fromkeys(VIDEOS, (2, 2, 3)) | dict.fromkeys(IMAGES, (3, 4)) | {
    "flux2": (1, 2, 2, 2), "ltx2_audio": (5,),
}  # fmt: skip
BEHIND_TOKENS = {  # so many tokens without a place, then a grid
    "ast": (2, (3, 4)), "beit": (1, (3, 4)), "clip_vision": (1, (3, 4)), "deit": (2, (3, 4)),
    "dinov2": (1, (3, 4)), "vit": (1, (3, 4)), "vivit": (1, (2, 2, 2)),
}  # fmt: skip
ARGUED: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek_v3 further": ("deepseek_v3", {"factor": 10.0}),
    "llama3 further": ("llama3", {"factor": 8.0}),
    "mpt steeper": ("mpt", {"alibi_bias_max": 4.0}),
    "qwen2 further": ("qwen2", {"factor": 4.0}),
    "qwen3 further": ("qwen3", {"factor": 4.0}),
    "t5 decoder": ("t5", {"decoder": True}),
    "swin_v2 larger": ("swin_v2", {"pretrained_window": 6}),
    "ltx2 interleaved": ("ltx2", {"pairing": "interleaved"}),
}


def places(name: str) -> Any:
    if name in GRIDS:
        return positions.grid(*GRIDS[name])
    if name in BEHIND_TOKENS:
        count, size = BEHIND_TOKENS[name]
        return positions.prefixed(positions.grid(*size), count)
    if name.endswith("detr"):
        image = positions.masked_grid(torch.ones(1, 3, 4, dtype=torch.bool))[0]
        return positions.on_levels([image, image]) if name == "deformable_detr" else image
    if name in ("qwen2_vl", "qwen3_vl"):
        return torch.stack([torch.arange(SEQ) * 61 // step for step in (1, 2, 4)], -1)
    return torch.arange(SEQ) * 61


def recipe(name: str, arguments: dict[str, Any]) -> dict[str, Tensor]:
    function = getattr(recipes, name)
    depth = {"depth": MANY[name]} if "depth" in signature(function).parameters else {}
    made = function(**depth, **arguments)
    found: dict[str, Tensor] = {}
    for layer, positional in enumerate((made,) if isinstance(made, Positional) else made):
        encodings = (*positional.tokens, *positional.queries_keys, *positional.scores)
        for at, encoding in enumerate(encodings):
            heads = getattr(encoding, "heads", None) or 2
            width = getattr(encoding, "head_dim", 8)
            for part, x in driven(settled(encoding), places(name), heads, heads, width).items():
                gradient = "d " if part.startswith("d ") else ""
                found[f"{gradient}{layer} {at} {part.removeprefix('d ')}"] = x
    return found


NARROW = {name: {"dim": 64} for name in ("wav2vec2", "data2vec_audio")}  # convolutions take long
CASES = {name: partial(recipe, name, NARROW.get(name, {})) for name in recipes.__all__}
CASES |= {told: partial(recipe, *given) for told, given in ARGUED.items()}
