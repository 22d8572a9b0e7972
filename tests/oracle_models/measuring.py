"""What small models of a type say of it, for ``families.json``: one field perturbed at a time."""

from collections.abc import Sequence
from itertools import product
from math import isclose
from typing import Any

from tests.oracle_models import building
from tests.oracle_models.layers import Layer, layers_of, model_of
from transformers import CONFIG_MAPPING

from posenc.interop.layer_types import WINDOWS

SIZE = 3
"""A window of a few keys."""

FULL, SLIDING = "full_attention", "sliding_attention"

YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "mscale_all_dim": 0.8,
        "original_max_position_embeddings": 64}  # fmt: skip


def measured(model_type: str) -> dict[str, Any]:
    """The facts of a type that models of it show; only what was seen."""
    plain = _seen(model_type)
    if not plain:
        return {}
    found: dict[str, Any] = {"window": window(model_type)}
    rotation = next((each.rotation for each in plain if each.rotation), None)
    if rotation is not None:
        found["pairing"] = rotation.pairing
        if rotation.axes is not None:
            found["sections"] = sections(rotation.axes)
        if (how := scale(model_type, plain[0])) is not None:
            found["scale"] = how
    return found


def _seen(model_type: str, **fields: Any) -> list[Layer]:
    """The layers of a small model; none where it cannot be built or run."""
    try:
        return layers_of(model_of(building.config_of(model_type, **fields)))
    except Exception:
        return []


def sections(axes: Sequence[int]) -> list[Any]:
    """How pairs are shared out among axes: dealt out or in runs, and how many each has."""
    runs = list(axes) == sorted(axes)
    return ["contiguous" if runs else "interleaved", *(axes.count(i) for i in range(max(axes) + 1))]


def scale(model_type: str, layer: Layer) -> str | None:
    """By what a layer multiplies scores, where it is not 1/√head_dim."""
    if layer.scale is None or layer.head_dim is None:
        return None
    for field, given, meant in (
        ("attention_multiplier", 0.37, 0.37),
        ("query_pre_attn_scalar", 100, 0.1),
        ("rope_parameters", YARN, (1 + 0.08 * 1.3862943611) ** 2 * layer.head_dim**-0.5),
    ):
        if field in building.config_of(model_type).to_dict():
            seen = [each for each in _seen(model_type, **{field: given}) if each.scale]
            if seen and isclose(seen[-1].scale or 0, meant, rel_tol=1e-4):
                return "latent" if field == "rope_parameters" else field
    for name, factor in (("one", layer.head_dim**0.5), ("half", 2**0.5)):
        if isclose(layer.scale * layer.head_dim**0.5, factor, rel_tol=1e-4):
            return name
    return None


def window(model_type: str) -> list[str]:
    """Which layers slide where a window is given, and the fields that say how far they see."""
    depth = building.DEPTH
    kind, fields, everywhere = CONFIG_MAPPING[model_type], [], []
    mixed = [(FULL, SLIDING)[i % 2] for i in range(depth)]
    for name in WINDOWS:
        if not hasattr(kind, name) and name not in vars(kind):
            continue
        for types, switch in product(({}, {"layer_types": mixed}), ({}, {"use_sliding_window": 1})):
            given = {name: SIZE, **types, **{key: bool(value) for key, value in switch.items()}}
            reaches = [each.reach.before if each.reach else None for each in
                       _seen(model_type, **given)]  # fmt: skip
            sliding = [each for each in reaches if each in (SIZE, SIZE + 1)]
            if sliding:
                fields.append(f"{name}+1" if min(sliding) > SIZE else name)
            if types and len(reaches) == depth and sliding:
                everywhere.append(len(sliding) == depth)
    if not fields:
        return []
    return ["everywhere" if everywhere and all(everywhere) else "some", *dict.fromkeys(fields)]
