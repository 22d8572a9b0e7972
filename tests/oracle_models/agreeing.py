"""One model type held against its reading: a small model runs, and the oracle looks at it."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import torch
from tests.oracle_models import building, random_ropes
from tests.oracle_models.layers import Layer, Rotation, layers_of, model_of
from tests.oracle_models.masks import Reach
from torch import nn
from transformers import PreTrainedConfig

from posenc import Learned, LearnedGrid, MultimodalRotary, Rotary, Sinusoidal
from posenc.interop.huggingface import LayerSetup, Part, PositionalSetup, positional_setup

FREQUENCY, FACTOR, SCALE = 3e-5, 1e-4, 1e-3
"""How far float32 of a model may be off, as a share."""

SCALED_BEFORE = ("esm", "openai_privacy_filter", "esmc")
"""Models that scale queries before they rotate them: what attention multiplies with is 1."""

UNCOMPARED = ("hrm_text", "csm_depth_decoder_model")
"""Models that go through a few layers many times, or count positions by themselves."""


@dataclass
class Verdict:
    """What came of one type."""

    model_type: str
    # agrees, differs (a misreading), refused, told (in words only), composite (its parts are types
    # of their own), not run
    status: str
    does: str = ""  # what the reading says, in a few words
    why: str = ""  # of what does not agree
    checks: int = 0  # number of comparisons
    seconds: float = 0.0
    differing: list[str] = field(default_factory=list)


def verdict(model_type: str) -> Verdict:
    """Builds, reads, runs and compares: as it is by default, then with a random rotation."""
    try:
        config = building.config_of(model_type)
    except Exception as error:
        return Verdict(model_type, "not run", why=f"no small configuration: {_first_line(error)}")
    found = verdict_of(model_type, config)
    changed = random_ropes.fields(config, model_type) if found.status == "agrees" else None
    try:
        config = building.config_of(model_type, **(changed or {}))
    except Exception:  # a type of rotation that its class refuses
        return found
    other = verdict_of(model_type, config) if changed else found
    if other.status == "differs":
        other.why = f"with {changed}: {other.why}"
        return other
    found.checks += other.checks if changed else 0
    return found


def verdict_of(model_type: str, config: PreTrainedConfig) -> Verdict:
    """The same, of a configuration."""
    try:
        setup = positional_setup(config)
    except ValueError as error:
        return Verdict(model_type, "refused", why=_first_line(error))
    does = described(setup)
    own = [part for part in setup if part.model_type == model_type]
    if not own:
        return Verdict(model_type, "composite", does)
    if not any(layer.positional for part in own for layer in part.layers):
        return Verdict(model_type, "told", does, "in words only")
    try:
        model = model_of(config)
        found = _compared(model, own)
    except Exception as error:
        return Verdict(model_type, "not run", does, _first_line(error))
    differing = [each for each in found if each]
    status = "differs" if differing else "agrees" if found else "not run"
    return Verdict(model_type, status, does, "; ".join(differing[:1]), len(found), 0.0, differing)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:160]


def described(setup: PositionalSetup) -> str:
    """The set-up in a few words: of each part, each kind of layer once."""
    return "; ".join(dict.fromkeys(_part_words(part) for part in setup))


def _part_words(part: Part) -> str:
    kinds = dict.fromkeys(_layer_words(layer) for layer in part.layers)
    told = " / ".join(kinds) or "nothing"
    if all(layer.positional is None for layer in part.layers) and part.notes:
        told = part.notes[0]
    return f"{part.name}: {told}"


def _layer_words(layer: LayerSetup) -> str:
    if layer.positional is None:
        return "in words"
    return " + ".join(type(each).__name__ for each in layer.encodings) or "no encoding"


def _compared(model: nn.Module, parts: list[Part]) -> list[str | None]:
    """Of each comparison what differs, or None."""
    part = next((each for each in parts if each.name != "indexer"), parts[0])
    held = [each.layers[0].positional for each in parts if each.layers]
    tables = [encoding for each in held if each is not None for encoding in each.tokens]
    found = [table_differs(each, model) for each in tables]
    taken = {"input_ids", "decoder_input_ids", "inputs_embeds"}
    names = {*inspect.signature(model.forward).parameters}
    if taken & names and not any(x.positional and len(x.positional.scores) for x in part.layers):
        for layer in layers_of(model):
            if layer.index < len(part.layers) and part.model_type not in UNCOMPARED:
                found += layer_differs(layer, part.layers[layer.index], part.model_type)
    return found


def layer_differs(seen: Layer, told: LayerSetup, model_type: str) -> list[str | None]:
    """What is read of a layer, held against what was seen of it."""
    if told.positional is None:
        return []
    encoding = next((e for e in told.positional.queries_keys
                     if isinstance(e, Rotary | MultimodalRotary)), None)  # fmt: skip
    found = [rotation_differs(seen.rotation, encoding, seen.index)]
    if seen.scale is not None and told.softmax_scale and model_type not in SCALED_BEFORE:
        far = abs(seen.scale / told.softmax_scale - 1) > SCALE
        scales = f"layer {seen.index}: scale {seen.scale:.6g}, read {told.softmax_scale:.6g}"
        found.append(scales if far else None)
    if seen.reach is not None:
        reach = Reach(told.window, seen.reach.after, told.chunk)
        same = (seen.reach.before, seen.reach.chunk) == (reach.before, reach.chunk)
        found.append(None if same else f"layer {seen.index}: sees {seen.reach}, read {reach}")
    return found


def rotation_differs(
    seen: Rotation | None, told: Rotary | MultimodalRotary | None, index: int
) -> str | None:
    """Frequencies, pairs, factor and axes of a layer."""
    if seen is None or told is None:
        return None if seen is told else f"layer {index}: rotates {seen}, read {told}"
    rotary = told.rotary if isinstance(told, MultimodalRotary) else told
    turns = torch.tensor([each / 2**192 for each in rotary.frequencies.turns()])
    frequencies = 2 * torch.pi * turns.double()
    moving = frequencies != 0
    if seen.pairing != rotary.pairing or len(seen.pairs) != int(moving.sum()):
        return f"layer {index}: {seen.pairing} pairs of {seen.width} channels, read {rotary}"
    if not torch.allclose(seen.frequencies, frequencies[moving], rtol=FREQUENCY, atol=2e-7):
        return f"layer {index}: frequencies {seen.frequencies[:4].tolist()}, read {rotary}"
    if abs(seen.factor / rotary.frequencies.attention_factor - 1) > FACTOR:
        return f"layer {index}: factor {seen.factor:.6g}, read {rotary}"
    if isinstance(told, MultimodalRotary) and seen.axes is not None:
        axes = tuple(told.sincos.axes)
        return None if seen.axes == axes else f"layer {index}: axes {seen.axes}, read {axes}"
    return None


def table_differs(tokens: Any, model: nn.Module) -> str | None:
    """A table, held against the parameters and buffers of a model."""
    if isinstance(tokens, Learned | LearnedGrid):
        rows, dim = tokens.weight.shape
        shapes = [x.shape for n, x in model.named_parameters() if "pos" in n or "wpe" in n]
        same = any(shape[-1] == dim and shape.numel() == rows * dim for shape in shapes)
        return None if same else f"no table has {rows} rows of {dim}; there are {shapes}"
    if not isinstance(tokens, Sinusoidal):
        return None
    loose = (x for module in model.modules() for x in vars(module).values())
    held = [*model.parameters(), *model.buffers()]
    for table in (*held, *(x for x in loose if isinstance(x, torch.Tensor))):
        if table.ndim > 1 and table.shape[-1] == tokens.dim:
            rows = table.detach().double().reshape(-1, tokens.dim)[:200]
            ours = Sinusoidal(tokens.dim, tokens.base, tokens.convention.name)
            mine = ours.table(torch.arange(len(rows)), dtype=torch.float64)
            if len(rows) > 3 and float((mine[3:] - rows[3:]).abs().max()) < 2e-3:
                return None
    return "no table of sines and cosines is this one"
