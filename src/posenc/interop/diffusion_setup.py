"""Transformers of diffusers, and image models of timm: what their files say of positions."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.interop.families import diffusers
from posenc.interop.fields import Configuration
from posenc.interop.setup import LayerSetup, Part
from posenc.numerics.pairing import Pairing

SINES = "sines and cosines of the coordinates of a patch (posenc.AxialSinusoidal), scaled to the \
size trained on"

SIZES = {
    "tiny": (192, 12, 64), "small": (384, 12, 64), "base": (768, 12, 64), "large": (1024, 24, 64),
    "huge": (1280, 32, 80),
}  # fmt: skip
"""Width, depth and width of a head of timm's vision transformers, by the word in their names."""

WITHOUT_PLACES = {
    "num_classes", "in_chans", "global_pool", "init_values", "drop_rate", "drop_path_rate",
}  # fmt: skip
"""Arguments of timm's vision transformers on which no position depends."""

NAME = re.compile(r"^(vit|deit)_(tiny|small|base|large|huge)_patch(\d+)_(\d+)(\.\w+)?$")


def foreign_part(values: Mapping[str, Any]) -> Part | None:
    """The set-up that a file of diffusers or of timm means; None of other files."""
    if not isinstance(name := values.get("_class_name"), str):
        given = values.get("architecture")
        if not isinstance(given, str) or "model_type" in values:
            return None
        if (part := timm_part(values)) is None:
            raise ValueError(f"architecture is {given!r}; such as vit_base_patch16_224 are known.")
        return part
    if (facts := diffusers().get(name)) is None:
        raise ValueError(f"_class_name is {name!r}; known are {', '.join(diffusers())}.")
    config = Configuration({**facts["defaults"], **values}, name)
    count = config.whole("num_layers") + (config.get("num_single_layers") or 0)
    form, field = facts.get("form", (None, None))
    held, notes = None, [SINES]
    if form and (form != "cogvideox" or config.get("use_rotary_positional_embeddings")):
        base = config.number("rope_theta") if "rope_theta" in facts["defaults"] else None
        held = Positional(queries_keys=_rotation(config, form, field, base))
        besides = facts.get("besides", {}).items()
        notes = [facts["note"], *(words for name, words in besides if config.get(name))]
    scale = config.whole("attention_head_dim") ** -0.5
    layers = (LayerSetup(None, held, scale),) * count
    return Part("image" if "2D" in name else "video", name, layers, notes=tuple(notes))


def _rotation(
    config: Configuration, form: str, field: str | None, base: float | None
) -> QueryKeyEncoding:
    head = config.whole("attention_head_dim")
    if form.startswith("ltx"):
        heads = config.whole("num_attention_heads")
        if form == "ltx":  # 25 frames a second, and 32 pixels a patch of its latents
            pixels = Fraction(64, config.whole("patch_size"))
            sizes = [Fraction(20 * 25, 8 * config.whole("patch_size_t")), pixels, pixels]
            return LTXRotary(head, heads, sizes)
        sizes = [config.whole(n) for n in ("pos_embed_max_pos", "base_height", "base_width")]
        pairing: Pairing = "half" if config.get("rope_type") == "split" else "interleaved"
        return LTXRotary(head, heads, sizes, base or 1e4, pairing=pairing)
    split = tuple(config.listed(field) or ()) if field else None
    if form == "minimax_h3":
        split = (2 * config.whole("rope_freq_dim"),) * 3
    return AxialRotary(head, base and float(base), form, split=split)


def timm_part(values: Mapping[str, Any]) -> Part | None:
    """The set-up of a vision transformer of timm, by its name; None of names that do not say it."""
    name = str(values.get("architecture"))
    if (found := NAME.match(name)) is None:
        return None
    patch, image = int(found[3]), int(found[4])
    width, depth, head = SIZES[found[2]]
    kept = values.get("pretrained_cfg") or {}
    size = list(kept.get("input_size") or ())[-2:] if kept.get("fixed_input_size") else []
    told = size in ([], [image, image]) and values.get("num_features", width) == width
    if {*(values.get("model_args") or {})} - WITHOUT_PLACES or not told or image % patch:
        raise ValueError(f"{name} has sizes in its file that its name does not say.")
    table = LearnedGrid(width, (image // patch,) * 2, prefix=1, device="meta")
    layers = (LayerSetup(None, Positional(tokens=table), head**-0.5),) * depth
    return Part("vision", name, layers, notes=("one class token before the patches",))
