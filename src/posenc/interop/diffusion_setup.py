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

SIZES = {"tiny": 192, "small": 384, "base": 768, "large": 1024, "huge": 1280}
"""Widths of timm's vision transformers, by the word in their names."""

WITHOUT_PLACES = {
    "num_classes", "in_chans", "global_pool", "init_values", "drop_rate", "drop_path_rate",
}  # fmt: skip
"""Arguments of timm's vision transformers on which no position depends."""

NAME = re.compile(r"^(vit|deit)_(tiny|small|base|large|huge)_patch(\d+)_(\d+)(\.\w+)?$")


def is_foreign(values: Mapping[str, Any]) -> bool:
    """Whether a file is one of diffusers or of timm."""
    named = isinstance(values.get("architecture"), str) and "model_type" not in values
    return isinstance(values.get("_class_name"), str) or named


def foreign_part(values: Mapping[str, Any]) -> Part:
    """The set-up that such a file means."""
    if not isinstance(name := values.get("_class_name"), str):
        part = timm_part(values)
        if part is None:
            given = values["architecture"]
            raise ValueError(f"architecture is {given!r}; names as vit_base_patch16_224 are known.")
        return part
    if (facts := diffusers().get(name)) is None:
        raise ValueError(f"_class_name is {name!r}; known are {', '.join(diffusers())}.")
    config = Configuration({**facts["defaults"], **values}, name)
    count = config.whole("num_layers") + (config.get("num_single_layers") or 0)
    part, head = "image" if "2D" in name else "video", config.whole("attention_head_dim")
    form, field = facts.get("form", (None, None))
    if form is None or (form == "cogvideox" and not config.get("use_rotary_positional_embeddings")):
        return Part(part, name, (LayerSetup(None, None, head**-0.5),) * count, notes=(SINES,))
    given = config.number("rope_theta") if "rope_theta" in facts["defaults"] else None
    base = None if given is None else float(given)
    held = Positional(queries_keys=_rotation(config, head, form, field, base))
    notes = [words for name, words in facts.get("besides", {}).items() if config.get(name)]
    layers = (LayerSetup(None, held, head**-0.5),) * count
    return Part(part, name, layers, notes=(facts["note"], *notes))


def _rotation(
    config: Configuration, head: int, form: str, field: str | None, base: float | None
) -> QueryKeyEncoding:
    if form == "ltx":
        frames, pixels = config.whole("patch_size_t"), config.whole("patch_size")
        sizes = (Fraction(20 * 25, 8 * frames), Fraction(64, pixels), Fraction(64, pixels))
        return LTXRotary(head, config.whole("num_attention_heads"), sizes)
    if form == "ltx2":
        pairing: Pairing = "half" if config.get("rope_type") == "split" else "interleaved"
        sizes = [config.whole(n) for n in ("pos_embed_max_pos", "base_height", "base_width")]
        heads = config.whole("num_attention_heads")
        return LTXRotary(head, heads, sizes, base or 1e4, pairing=pairing)
    if form == "minimax_h3":
        return AxialRotary(head, base, form, split=(2 * config.whole("rope_freq_dim"),) * 3)
    if field is None:
        return AxialRotary(head, form=form)
    return AxialRotary(head, base, form, split=tuple(config.listed(field) or ()))


def timm_part(values: Mapping[str, Any]) -> Part | None:
    """The set-up of a vision transformer of timm, by its name; None of names that do not say it."""
    name = str(values.get("architecture"))
    if (found := NAME.match(name)) is None:
        return None
    patch, image, width = int(found[3]), int(found[4]), SIZES[found[2]]
    kept = values.get("pretrained_cfg") or {}
    size = list(kept.get("input_size") or ())[-2:] if kept.get("fixed_input_size") else []
    if (
        {*(values.get("model_args") or {})} - WITHOUT_PLACES
        or size not in ([], [image, image])
        or values.get("num_features", width) != width
        or image % patch
    ):
        raise ValueError(f"{name} has sizes in its file that its name does not say.")
    table = LearnedGrid(width, (image // patch,) * 2, prefix=1, device="meta")
    depth = {"large": 24, "huge": 32}.get(found[2], 12)
    head = 80 if found[2] == "huge" else 64
    layers = (LayerSetup(None, Positional(tokens=table), head**-0.5),) * depth
    return Part("vision", name, layers, notes=("one class token before the patches",))
