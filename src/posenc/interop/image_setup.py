"""Models of images as objects: those of transformers, of diffusers and of timm."""

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Any

from posenc.encodings.base import QueryKeyEncoding, TokenEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.encodings.scores.swin import SwinBias, SwinV2Bias
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.interop.fields import Configuration, diffusers
from posenc.interop.setup import LayerSetup, Part, alike
from posenc.numerics.pairing import Pairing

COORDINATES = "positions are (row, column) of a patch"

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


def image_part(config: Configuration, name: str) -> Part:
    """The encodings of an image model: a table of patches, rotations by two coordinates."""
    facts, count = config.facts, config.whole("layers", "depth")
    form, scale, rotary = facts.get("axial"), None, []
    if form == "":
        usual = "rotates by the two coordinates of a patch, in a form that was not held against it"
        words = facts.get("axial_words", usual)
        return alike(name, config.model_type, count, None, notes=(words,))
    tokens, notes = _table(config)
    if form is not None:
        width = config.whole(facts.get("width", "hidden_size"), "hidden_size")
        head = config.get("head_dim") or width // config.whole("heads")
        rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
        given = (rope.get("rope_theta"), config.get("rope_theta"), facts.get("theta"))
        base = next((each for each in given if each is not None), None)
        rotary, scale = [AxialRotary(head, base, form=form)], head**-0.5
        notes = (COORDINATES, *notes)
    return alike(name, config.model_type, count, Positional(tokens, rotary), scale, notes)


def _table(config: Configuration) -> tuple[list[TokenEncoding], tuple[str, ...]]:
    """A table of patches, and notes."""
    said = tuple(config.facts.get("notes", ()))
    if "patches" not in config.facts:
        return [], said
    if _heeded(config, "use_absolute_position_embeddings") is False:
        return [], ("without a table of patches, as use_absolute_position_embeddings says",)
    width = config.whole("hidden_size")
    if config.model_type == "aimv2_vision_model" and config.get("is_native"):
        return [AxialSinusoidal(width, "mae")], (COORDINATES,)
    before = config.facts["patches"] + bool(_heeded(config, "distilled"))
    table = LearnedGrid(width, _patches_of(config), prefix=before, device="meta")
    return [table], (*said, "interpolated where an image has another number of patches")


def windowed_part(config: Configuration, name: str) -> Part:
    """Swin: stages of growing width, each with its own number of heads.

    The second version cuts windows off to the rows of a stage, and knows those that it was trained
    on. Swin2SR, which is of it, has as many patches in all stages, and was trained on none.
    """
    depths, heads = config.listed("depths") or (), config.listed("heads") or ()
    window, layers = config.whole("window_size"), []
    pretrained = config.values.get("pretrained_window_sizes") or 0
    for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
        if config.facts["scores"] == "windowed":
            bias = SwinBias(count, window, device="meta")
        else:
            alike = config.model_type == "swin2sr"
            rows = _patches_of(config)[0] // (1 if alike else 2**stage)
            known = pretrained[stage] if isinstance(pretrained, list | tuple) else pretrained
            known = None if alike else known or None
            bias = SwinV2Bias(count, min(window, rows), pretrained_window=known, device="meta")
        layers += [LayerSetup(f"stage {stage}", Positional(scores=bias))] * depth
    notes = (f"attention within windows of {window} × {window} patches, every other one shifted",)
    if config.values.get("use_absolute_embeddings"):
        notes += ("a learned table of patches besides",)
    return Part(name, config.model_type, tuple(layers), notes=notes)


def _patches_of(config: Configuration) -> tuple[int, ...]:
    """Rows and columns of the patches of an image as large as those that a model was trained on."""
    if _heeded(config, "num_patches") is not None:
        return (isqrt(config.whole("num_patches")),) * 2
    image = _heeded(config, "pretrain_image_size") or config.get("image_size")
    given = (image, config.get("patch_size"))
    size, patch = (tuple(x) if isinstance(x, list | tuple) else (x, x) for x in given)
    if None in (*size, *patch):
        raise ValueError(f"image_size is {size} and patch_size {patch}; both are needed.")
    return tuple(a // b for a, b in zip(size, patch, strict=True))


def _heeded(config: Configuration, field: str) -> Any:
    """What a field says to a model whose class has it; None of others, which do not look at it."""
    return config.get(field) if field in config.facts.get("defaults", {}) else None


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
    head, held, notes = config.whole("attention_head_dim"), None, [SINES]
    switch = facts.get("rotates")
    if "form" in facts and (switch is None or config.get(switch)):
        held = Positional(queries_keys=_rotation(config, facts, head))
        besides = facts.get("besides", {}).items()
        notes = [*facts["notes"], *(words for name, words in besides if config.get(name))]
    called = "image" if "2D" in name else "video"
    return alike(called, name, count, held, head**-0.5, tuple(notes))


def _rotation(config: Configuration, facts: Mapping[str, Any], head: int) -> QueryKeyEncoding:
    form, field = facts["form"]
    base = config.number("rope_theta") if "rope_theta" in facts["defaults"] else None
    if form == "ltx":  # 25 frames a second, and 32 pixels a patch of its latents
        pixels = Fraction(64, config.whole("patch_size"))
        sizes = [Fraction(20 * 25, 8 * config.whole("patch_size_t")), pixels, pixels]
        return LTXRotary(head, config.whole("heads"), sizes)
    if form == "ltx2":
        sizes = [config.whole(n) for n in ("pos_embed_max_pos", "base_height", "base_width")]
        pairing: Pairing = "half" if config.get("rope_type") == "split" else "interleaved"
        return LTXRotary(head, config.whole("heads"), sizes, base or 1e4, pairing=pairing)
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
    notes = ("one class token before the patches",)
    return alike("vision", name, depth, Positional(table), head**-0.5, notes)
