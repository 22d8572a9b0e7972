"""Models of images: tables of patches, and rotations by two coordinates."""

from math import isqrt
from typing import Any

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.interop import schemes
from posenc.interop.configurations import Configuration
from posenc.interop.image_models import AXIAL, OF_DINOV3, TABLES
from posenc.interop.setup import LayerSetup, Part

COORDINATES = "positions are (row, column) of a patch"


def image_part(config: Configuration, name: str) -> Part:
    """The encodings of an image model.

    Raises:
        ValueError: A size is missing or does not fit.
    """
    name = "vision" if name == "text" else name
    count = config.whole("depth" if config.get("depth") and not config.get("layers") else "layers")
    tokens, notes = _table(config)
    if config.model_type not in AXIAL:
        held = Positional(tokens=tokens)
        return Part(name, config.model_type, (LayerSetup(None, held),) * count, notes=notes)
    form = AXIAL[config.model_type]
    if not form:
        words = "rotates by the two coordinates of a patch, in a form that was not held against it"
        if config.model_type in OF_DINOV3:
            words = "rotates by where a patch is between −1 and 1, as posenc.DINOv3Rotary does"
        return Part(name, config.model_type, (LayerSetup(None, None),) * count, notes=(words,))
    head = _head(config)
    rotary = AxialRotary(head, _base(config), form=form)
    held = Positional(tokens=tokens, queries_keys=rotary)
    layer = LayerSetup(None, held, head**-0.5)
    return Part(name, config.model_type, (layer,) * count, notes=(COORDINATES, *notes))


def _base(config: Configuration) -> float | None:
    """The base of both axes, None where nothing says; these models rescale no frequencies."""
    rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
    kind = rope.get("rope_type", rope.get("type"))
    if kind not in (None, "axial", "default") and config.model_type != "llama4_vision_model":
        raise ValueError(
            f"rope_type is {kind!r}; {config.model_type} turns by the two coordinates of a patch, "
            f"and takes 'axial' alone. Correct the file."
        )
    given = (rope.get("rope_theta"), config.get("rope_theta"), config.facts.get("theta"))
    return next((base for base in given if base is not None), None)


def _head(config: Configuration) -> int:
    if config.get("head_dim"):
        return config.whole("head_dim")
    width = "embed_dim" if config.get("embed_dim") and _qwen2(config) else "hidden_size"
    return config.whole(width) // config.whole("heads")


def _qwen2(config: Configuration) -> bool:
    """Qwen2-VL's vision files call the width of the language model ``hidden_size``."""
    return config.model_type == "qwen2_vl_vision"


def _table(
    config: Configuration,
) -> tuple[list[LearnedGrid] | list[AxialSinusoidal], tuple[str, ...]]:
    kind = config.model_type
    if kind == "gemma4_vision":
        return [], ("learned tables of rows and columns besides, summed (posenc.AxialLearned)",)
    if kind in TABLES:
        return [], ("a learned table of patches besides, interpolated to the image",)
    if kind not in schemes.PATCHES:
        return [], ()
    if _flag(config, "use_absolute_position_embeddings") is False:
        return [], ("without a table of patches, as use_absolute_position_embeddings says",)
    width = config.whole("hidden_size")
    if kind == "aimv2_vision_model" and config.get("is_native"):
        return [AxialSinusoidal(width, "mae")], (COORDINATES,)
    grid = patches_of(config)
    before = schemes.PATCHES[kind] + bool(_flag(config, "distilled"))
    table = LearnedGrid(width, grid, prefix=before, device="meta")
    notes = ("interpolated where an image has another number of patches",)
    if kind == "vit_mae":
        notes = ("its rows are sines, as posenc.AxialSinusoidal has them; not trained", *notes)
    if kind == "timesformer" and config.get("attention_type") != "space_only":
        notes = (*notes, "a learned table of frames besides")
    return [table], notes


def patches_of(config: Configuration) -> tuple[int, ...]:
    """Rows and columns of the patches of an image as large as those that a model was trained on.

    Raises:
        ValueError: A size is missing, is none, or images are smaller than a patch.

    Example:
        >>> patches_of(Configuration({"image_size": [256, 192], "patch_size": 16}, "vit"))
        (16, 12)
    """
    patch = config.get("patch_size")
    if _heeded(config, "num_patches") is not None:
        return _square(config.whole("num_patches"))
    size = _heeded(config, "pretrain_image_size") or config.get("image_size")
    size, patch = (tuple(x) if isinstance(x, list | tuple) else (x, x) for x in (size, patch))
    for name, value in (("image_size", size), ("patch_size", patch)):
        if len(value) != 2 or not all(isinstance(x, int) and x > 0 for x in value):
            raise ValueError(f"{name} is {value}; it must be a whole number, or two. Correct it.")
    grid = tuple(a // b for a, b in zip(size, patch, strict=True))
    if not all(grid):
        raise ValueError(
            f"image_size is {size} and patch_size {patch}; an image must have a patch at least. "
            f"Correct one of them."
        )
    return grid


def _square(patches: int) -> tuple[int, int]:
    side = isqrt(patches)
    if side**2 != patches:
        raise ValueError(
            f"num_patches is {patches}; the table is one of a square of patches, and {side**2} and "
            f"{(side + 1) ** 2} are next to it. Correct the file."
        )
    return side, side


def _flag(config: Configuration, field: str) -> bool | None:
    value = _heeded(config, field)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{field} is {value!r}; it must be true or false. Correct the file.")
    return value


def _heeded(config: Configuration, field: str) -> Any:
    """What a field says to a model whose class has it; None of others, which do not look at it."""
    return config.get(field) if field in config.facts.get("defaults", {}) else None
