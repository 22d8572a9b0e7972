"""Transformers of diffusers, and image models of timm: what their files say of positions."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.interop.configurations import Configuration
from posenc.interop.setup import LayerSetup, Part
from posenc.numerics.pairing import Pairing

DEFAULTS: Mapping[str, dict[str, Any]] = {
    "CogVideoXTransformer3DModel": {"attention_head_dim": 64, "num_layers": 30},
    "DiTTransformer2DModel": {"attention_head_dim": 72, "num_layers": 28},
    "Flux2Transformer2DModel": {"attention_head_dim": 128, "num_layers": 8,
                                "num_single_layers": 48, "axes_dims_rope": (32, 32, 32, 32),
                                "rope_theta": 2000},
    "FluxTransformer2DModel": {"attention_head_dim": 128, "num_layers": 19,
                               "num_single_layers": 38, "axes_dims_rope": (16, 56, 56)},
    "HunyuanVideoTransformer3DModel": {"attention_head_dim": 128, "num_layers": 20,
                                       "num_single_layers": 40, "rope_theta": 256.0,
                                       "rope_axes_dim": (16, 56, 56)},
    "LTX2VideoTransformer3DModel": {"attention_head_dim": 128, "num_attention_heads": 32,
                                    "num_layers": 48, "rope_theta": 10000.0,
                                    "rope_type": "interleaved", "pos_embed_max_pos": 20,
                                    "base_height": 2048, "base_width": 2048},
    "LTXVideoTransformer3DModel": {"attention_head_dim": 64, "num_attention_heads": 32,
                                   "num_layers": 28, "patch_size": 1, "patch_size_t": 1},
    "MiniMaxH3Transformer3DModel": {"attention_head_dim": 128, "num_layers": 50,
                                    "rope_freq_dim": 16, "rope_theta": 10000.0},
    "PixArtTransformer2DModel": {"attention_head_dim": 72, "num_layers": 28},
    "QwenImageTransformer2DModel": {"attention_head_dim": 128, "num_layers": 60,
                                    "axes_dims_rope": (16, 56, 56)},
    "SD3Transformer2DModel": {"attention_head_dim": 64, "num_layers": 18},
    "WanTransformer3DModel": {"attention_head_dim": 128, "num_layers": 40},
}  # fmt: skip
"""What the classes of diffusers 0.42 have by default."""

SINES = ("DiTTransformer2DModel", "PixArtTransformer2DModel", "SD3Transformer2DModel")

THW = "positions are (frame, row, column) of a patch"
NOTES = {
    "CogVideoXTransformer3DModel": THW,
    "Flux2Transformer2DModel": "positions are (image, row, column, place in the text)",
    "FluxTransformer2DModel": "positions are (0, row, column) of a patch, and (0, 0, 0) for text",
    "HunyuanVideoTransformer3DModel": f"{THW}; text is not rotated",
    "LTXVideoTransformer3DModel": f"{THW}, in seconds and pixels; 25 frames a second are taken",
    "LTX2VideoTransformer3DModel": f"{THW}, in seconds and pixels; sound, and attention between "
    "both, turn by seconds alone, as posenc.recipes.ltx2_audio",
    "MiniMaxH3Transformer3DModel": "positions are (time, row, column), fractions among them; text "
    "goes along time",
    "QwenImageTransformer2DModel": f"{THW}, rows and columns from the middle",
    "WanTransformer3DModel": f"{THW}; text is attended to across, without positions",
}

BESIDES = {
    (
        "CogVideoXTransformer3DModel",
        "use_learned_positional_embeddings",
    ): "learned vectors of frame, row and column besides, added to the patches",
    ("QwenImageTransformer2DModel", "use_layer3d_rope"): "layers of an image count as frames, and "
    "the image that they are made from stands at -1",
    (
        "LTX2VideoTransformer3DModel",
        "use_keyframes_abs_pos_embedding",
    ): "one learned vector besides, added to the tokens of keyframes, wherever they are",
    (
        "WanTransformer3DModel",
        "pos_embed_seq_len",
    ): "learned vectors besides, added to the tokens of "
    "the images that a video begins and ends with",
}
"""What a field adds to a model, where it is set."""

SIZES = {"tiny": 192, "small": 384, "base": 768, "large": 1024, "huge": 1280}
"""Widths of timm's vision transformers, by the word in their names."""

WITHOUT_PLACES = {
    "num_classes",
    "in_chans",
    "global_pool",
    "init_values",
    "drop_rate",
    "drop_path_rate",
}
"""Arguments of timm's vision transformers on which no position depends."""

NAME = re.compile(r"^(vit|deit)_(tiny|small|base|large|huge)_patch(\d+)_(\d+)(\.\w+)?$")


def is_foreign(values: Mapping[str, Any]) -> bool:
    """Whether a file is one of diffusers or of timm.

    Example:
        >>> is_foreign({"_class_name": "FluxTransformer2DModel"}), is_foreign({"hidden_size": 8})
        (True, False)
    """
    return isinstance(values.get("_class_name"), str) or (
        isinstance(values.get("architecture"), str) and "model_type" not in values
    )


def is_told_by_name(architecture: object) -> bool:
    """Whether the name of a model of timm says what it does with positions.

    Example:
        >>> is_told_by_name("vit_base_patch16_224.augreg_in1k"), is_told_by_name("resnet50")
        (True, False)
    """
    return isinstance(architecture, str) and NAME.match(architecture) is not None


def foreign_part(values: Mapping[str, Any]) -> Part:
    """The set-up that such a file means.

    Raises:
        ValueError: The class or the name is not known, or a value does not fit.

    Example:
        >>> foreign_part({"_class_name": "WanTransformer3DModel"}).layers[0].positional.queries_keys
        ModuleList(
          (0): AxialRotary(128, base=10000.0, form='wan')
        )
    """
    if isinstance(values.get("_class_name"), str):
        return _diffusers(values)
    return timm_part(str(values["architecture"]), values)


def _diffusers(values: Mapping[str, Any]) -> Part:
    name = values["_class_name"]
    if name not in DEFAULTS:
        raise ValueError(
            f"_class_name is {name!r}; of diffusers, {', '.join(DEFAULTS)} are known. Build the "
            f"encoding from posenc.AxialRotary by hand."
        )
    config = Configuration({**DEFAULTS[name], **values}, name)
    count = config.whole("num_layers")
    if config.get("num_single_layers"):
        count += config.whole("num_single_layers")
    head = config.whole("attention_head_dim")
    if name in SINES:
        words = (
            "sines and cosines of the two coordinates of a patch, scaled to the size trained on "
            "(posenc.AxialSinusoidal)"
        )
        return Part("image", name, (LayerSetup(None, None, head**-0.5),) * count, notes=(words,))
    if name.startswith("CogVideoX") and not config.get("use_rotary_positional_embeddings"):
        words = (
            "sines and cosines of frame, row and column, scaled to the size trained on "
            "(posenc.AxialSinusoidal)"
        )
        return Part("video", name, (LayerSetup(None, None, head**-0.5),) * count, notes=(words,))
    held = Positional(queries_keys=ROTATIONS[name](config, head))
    part = "image" if "2D" in name else "video"
    layer = LayerSetup(None, held, head**-0.5)
    besides = [
        words for (kind, field), words in BESIDES.items() if kind == name and config.get(field)
    ]
    return Part(part, name, (layer,) * count, notes=(NOTES[name], *besides))


def _split(config: Configuration, name: str, head: int) -> tuple[int, ...]:
    split = config.get(name)
    if not isinstance(split, list | tuple) or sum(split) != head:
        raise ValueError(
            f"{name} is {split!r}; it must share out the {head} channels of a head. Correct it."
        )
    return tuple(split)


def _by_form(form: str, field: str) -> Callable[[Configuration, int], QueryKeyEncoding]:
    def rotation(config: Configuration, head: int) -> QueryKeyEncoding:
        split = _split(config, field, head)
        return AxialRotary(head, _base(config), form, split=split)

    return rotation


def _base(config: Configuration) -> float | None:
    """What a class that has a base says of it; None for others, whose form has one.

    Raises:
        ValueError: It is null, which no class takes.
    """
    if "rope_theta" not in DEFAULTS[config.model_type]:
        return None
    base = config.number("rope_theta")
    if base is None:
        raise ValueError("rope_theta is null; it must be a finite number. Correct the file.")
    return float(base)


def _ltx(config: Configuration, head: int) -> QueryKeyEncoding:
    frames, pixels = config.whole("patch_size_t"), config.whole("patch_size")
    sizes = (Fraction(20 * 25, 8 * frames), Fraction(64, pixels), Fraction(64, pixels))
    return LTXRotary(head, config.whole("num_attention_heads"), sizes)


def _ltx2(config: Configuration, head: int) -> QueryKeyEncoding:
    kind = config.get("rope_type")
    if kind not in ("interleaved", "split"):
        raise ValueError(f"rope_type is {kind!r}; it must be interleaved or split. Correct it.")
    sizes = [config.whole(name) for name in ("pos_embed_max_pos", "base_height", "base_width")]
    pairing: Pairing = "half" if kind == "split" else "interleaved"
    heads = config.whole("num_attention_heads")
    return LTXRotary(head, heads, sizes, _base(config) or 10_000.0, pairing=pairing)


def _minimax_h3(config: Configuration, head: int) -> QueryKeyEncoding:
    split = (2 * config.whole("rope_freq_dim"),) * 3
    return AxialRotary(head, _base(config), "minimax_h3", split=split)


ROTATIONS: Mapping[str, Callable[[Configuration, int], QueryKeyEncoding]] = {
    "CogVideoXTransformer3DModel": lambda config, head: AxialRotary(head, form="cogvideox"),
    "Flux2Transformer2DModel": _by_form("flux2", "axes_dims_rope"),
    "FluxTransformer2DModel": _by_form("flux", "axes_dims_rope"),
    "HunyuanVideoTransformer3DModel": _by_form("hunyuan_video", "rope_axes_dim"),
    "LTX2VideoTransformer3DModel": _ltx2,
    "LTXVideoTransformer3DModel": _ltx,
    "MiniMaxH3Transformer3DModel": _minimax_h3,
    "QwenImageTransformer2DModel": _by_form("qwen_image", "axes_dims_rope"),
    "WanTransformer3DModel": lambda config, head: AxialRotary(head, form="wan"),
}


def timm_part(name: str, values: Mapping[str, Any]) -> Part:
    """The set-up of a vision transformer of timm, by its name.

    Raises:
        ValueError: The name does not say enough, or the width is another one.
    """
    found = NAME.match(name)
    if found is None:
        raise ValueError(
            f"architecture is {name!r}; of timm, names as vit_base_patch16_224 say enough. Build "
            f"the encoding from posenc.LearnedGrid or posenc.SwinBias by hand."
        )
    patch, image = int(found[3]), int(found[4])
    _check_built_by_name(name, values, image)
    width = values.get("num_features", SIZES[found[2]])
    if width != SIZES[found[2]] or image % patch:
        raise ValueError(
            f"{name} has num_features {width}, and images of {image} in patches of {patch}; it "
            f"should be {SIZES[found[2]]} wide, and patches fill the image. Correct the file."
        )
    table = LearnedGrid(width, (image // patch,) * 2, prefix=1, device="meta")
    depth = {"large": 24, "huge": 32}.get(found[2], 12)
    head = 80 if found[2] == "huge" else 64
    layers = (LayerSetup(None, Positional(tokens=table), head**-0.5),) * depth
    return Part("vision", name, layers, notes=("one class token before the patches",))


def _check_built_by_name(name: str, values: Mapping[str, Any], image: int) -> None:
    """Refuse a file that says other sizes than its name: timm builds the model by them."""
    if strange := sorted(set(values.get("model_args") or {}) - WITHOUT_PLACES):
        raise ValueError(
            f"{name} has {', '.join(strange)} in model_args, which make another model than its "
            f"name says. Build the encoding from posenc.LearnedGrid by hand."
        )
    kept = values.get("pretrained_cfg") or {}
    size = list(kept.get("input_size") or ())[-2:]
    if kept.get("fixed_input_size") and size not in ([], [image, image]):
        raise ValueError(
            f"{name} has input_size {kept['input_size']} in pretrained_cfg, and its name says "
            f"{image}. Build the encoding from posenc.LearnedGrid by hand."
        )
