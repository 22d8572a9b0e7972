"""One model type held against its reading: built, run, watched and compared."""

import inspect
import re
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from tests.oracle_models import building, random_ropes, senses
from tests.oracle_models.comparing import (
    layer_of,
    pairs_of,
    permuted,
    rotation_differs,
    scale_of,
    scores_differ,
)
from tests.oracle_models.probing import POSITIONS, Record, watched
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, PreTrainedConfig

from posenc import (
    ALiBi,
    Learned,
    LearnedGrid,
    MultimodalRotary,
    Positional,
    Rotary,
    Sinusoidal,
    SwinBias,
    SwinV2Bias,
    T5Bias,
)
from posenc.interop.setup import LayerSetup, Part, PositionalSetup
from posenc.interop.setup_reading import positional_setup

TOKEN = 5

LOOPED = ("hrm_text",)
"""Models that go through a few layers many times: their count is that of the passes."""

SCALED_BEFORE = ("esm", "openai_privacy_filter", "esmc")
"""Models that scale queries before they rotate them: what attention multiplies with is 1."""


@dataclass
class Verdict:
    """What came of one type.

    Attributes:
        model_type: The type.
        status: ``"agrees"``, ``"differs"`` (a misreading), ``"refused"``, ``"told"`` (in words
            only), ``"partly"``, ``"composite"`` (its parts are types of their own), ``"not run"``.
        does: What the reading says, in a few words.
        why: Of what is not verified.
        checks: Number of comparisons.
    """

    model_type: str
    status: str
    does: str = ""
    why: str = ""
    checks: int = 0
    seconds: float = 0.0
    differing: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """As a dictionary."""
        return asdict(self)


def verdict(model_type: str, **fields: Any) -> Verdict:
    """Builds, reads, runs and compares: as it is by default, then with a random rotation."""
    found = _verdict(model_type, **fields)
    if found.status != "agrees" or fields:
        return found
    changed = random_ropes.fields(building.config_of(model_type), model_type)
    if changed is None:
        return found
    other = _verdict(model_type, **changed)
    if other.status == "agrees":
        found.checks += other.checks
    elif other.status == "differs":
        found.status, found.differing = "differs", other.differing
        found.why = f"with {changed}: {other.why}"
    return found


def _verdict(model_type: str, **fields: Any) -> Verdict:
    try:
        config = building.config_of(model_type, **fields)
    except Exception as error:
        return read_only(model_type, f"no tiny configuration: {_first_line(error)}")
    return verdict_of(model_type, config)


def verdict_of(model_type: str, config: PreTrainedConfig) -> Verdict:
    """The same, of a configuration."""
    try:
        setup = positional_setup(config)
    except ValueError as error:
        return Verdict(model_type, "refused", why=_first_line(error))
    if (told := _without_a_run(model_type, setup)) is not None:
        return told
    does = described(setup)
    try:
        model = building.built(config)
    except Exception as error:
        return Verdict(model_type, "not run", does, f"not built: {_first_line(error)}")
    try:
        return _run(model_type, model, setup, does)
    except Exception as error:
        return Verdict(model_type, "not run", does, f"not run: {_first_line(error)}")


def _without_a_run(model_type: str, setup: PositionalSetup) -> Verdict | None:
    """The verdict on what needs no running model: other types, and words."""
    if all(part.model_type != model_type for part in setup):
        return Verdict(model_type, "composite", described(setup))
    if not any(layer.positional for part in setup for layer in part.layers):
        return Verdict(model_type, "told", described(setup), "in words only")
    return None


def _by_default(model_type: str) -> PreTrainedConfig | dict[str, str]:
    """The configuration that the class has by default; a file that says no more than its type."""
    try:
        return CONFIG_MAPPING[model_type]()
    except Exception:
        return {"model_type": model_type}


def read_only(model_type: str, why: str) -> Verdict:
    """The verdict on a type whose reading is all that there is, and why."""
    try:
        setup = positional_setup(_by_default(model_type))
    except ValueError as error:
        return Verdict(model_type, "refused", why=_first_line(error))
    told = _without_a_run(model_type, setup)
    return told or Verdict(model_type, "not run", described(setup), why)


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
    held = layer.positional
    names = [type(e).__name__ for e in (*held.tokens, *held.queries_keys, *held.scores)]
    return " + ".join(names) or "no encoding"


def _run(model_type: str, model: nn.Module, setup: PositionalSetup, does: str) -> Verdict:
    main = next((p for p in setup if _rotation(p) is not None), setup.parts[0])
    axes = next((len(e.sections) for e in _encodings(main) if isinstance(e, MultimodalRotary)), 0)
    axes = axes or (3 if _shares_axes(model) else 0)
    if not _token_ids(model):
        return _without_tokens(model_type, model, setup, does)
    inputs, positions = _inputs(model, axes, _longest(setup), _rotation(main) is not None)
    with watched(model) as record:
        model(**inputs)
    parts = _own_parts(setup, model_type, model)
    differing, checks, compared = [], 0, set()
    for part in parts:
        for index, layer in enumerate(part.layers):
            found, kinds = _layer(part, index, layer, record, positions, model)
            checks += len(kinds)
            compared |= set(kinds)
            differing += [f"{part.name} layer {index}: {each}" for each in found]
    if differing:
        return Verdict(model_type, "differs", does, differing[0], checks, differing=differing)
    if not checks:
        return Verdict(model_type, "not run", does, "nothing to compare was seen", checks)
    if missing := _places(parts) - compared:  # of layers without an encoding, products are alike
        why = f"{', '.join(sorted(compared))} agree; {', '.join(sorted(missing))} not compared"
        return Verdict(model_type, "partly", does, why, checks)
    return Verdict(model_type, "agrees", does, checks=checks)


def _places(parts: list[Part]) -> set[str]:
    """The places in which layers have encodings."""
    names = ("tokens", "queries_keys", "scores")
    held = [layer.positional for part in parts for layer in part.layers if layer.positional]
    return {name for each in held for name in names if len(getattr(each, name))}


def _token_ids(model: nn.Module) -> bool:
    names = inspect.signature(model.forward).parameters
    return "input_ids" in names or "decoder_input_ids" in names


def _shares_axes(model: nn.Module) -> bool:
    """Whether the code of a model reads ``mrope_section``: then it is asked with three axes."""
    return any(hasattr(module, "mrope_section") for module in model.modules())


def _without_tokens(
    model_type: str, model: nn.Module, setup: PositionalSetup, does: str
) -> Verdict:
    """Models of images and sounds: tables by their shapes, rotations by what functions did."""
    differing, checks = [], 0
    for part in setup:
        for tokens in part.layers[0].positional.tokens if part.layers[0].positional else ():
            if isinstance(tokens, Sinusoidal):
                checks += 1
                differing.append(sines_differ(tokens, model))
            if isinstance(tokens, LearnedGrid | Learned):
                checks += 1
                shapes = [shape_differs(tokens, m) for m in building.all_built(model.config)]
                differing.append(None if None in shapes else shape_differs(tokens, model))
        checks += len(_windowed_biases(part))
        differing += windows_differ(_windowed_biases(part), model)
    rotation = next((r for p in setup if (r := _rotation(p)) is not None), None)
    if rotation is not None:
        record, grid = senses.run(model)
        calls = [each for each in record.rotated if pairs_of([each]) or each.name]
        found = senses.rotations_differ(rotation, calls, grid)
        checks += 1
        differing.append(found)
    differing = [each for each in differing if each]
    if differing:
        return Verdict(model_type, "differs", does, differing[0], checks, differing=differing)
    if not checks:
        return Verdict(model_type, "not run", does, "nothing to compare was seen")
    return Verdict(model_type, "agrees", does, checks=checks)


def _windowed_biases(part: Part) -> list[SwinBias | SwinV2Bias]:
    held = [layer.positional.scores[0] for layer in part.layers if layer.positional and
            len(layer.positional.scores)]  # fmt: skip
    return [bias for bias in held if isinstance(bias, SwinBias | SwinV2Bias)]


def windows_differ(biases: list[SwinBias | SwinV2Bias], model: nn.Module) -> list[str]:
    """What is wrong with biases within windows, layer by layer, against the tables of the model.

    Swin keeps a row of each displacement; Swin v2 makes rows from the displacements themselves,
    which are held against ours.
    """
    named = re.compile("relative_position_bias_table|relative_coords_table")
    tables = [each for name, each in _tables(model) if named.search(name)] if biases else []
    if len(tables) != len(biases):
        return [f"{len(biases)} layers are said to have biases, {len(tables)} have"]
    return [
        f"{bias} was read of a table of {tuple(table.shape)}"
        for bias, table in zip(biases, tables, strict=True)
        if not _is_table_of(bias, table)
    ]


def _is_table_of(bias: SwinBias | SwinV2Bias, table: Tensor) -> bool:
    if isinstance(bias, SwinBias):
        return table.shape == bias.weight.shape
    ours, table = bias.coordinates(), table.reshape(-1, 2).double()
    return ours.shape == table.shape and torch.allclose(ours, table, atol=1e-5)


def shape_differs(tokens: LearnedGrid | Learned, model: nn.Module) -> str | None:
    """What is wrong with a table: no parameter of the model has its rows and its width."""
    rows, dim = tokens.weight.shape
    shapes = []
    for name, each in model.named_parameters():
        if "pos" in name:
            shapes.append(tuple(each.shape))
            if each.shape[-1] == dim and each.numel() == rows * dim:
                return None
    return f"no table has {rows} rows of {dim}; there are {shapes}"


def _own_parts(setup: PositionalSetup, model_type: str, model: nn.Module) -> list[Part]:
    """The parts that a model that was built is made of: one stack has but one of them."""
    own = [part for part in setup if part.model_type == model_type]
    name = type(model).__name__
    if any(part.name == "encoder" for part in own):
        if name.endswith(("Encoder", "Stack")):
            return [part for part in own if part.name == "encoder"]
        if name.endswith("Decoder"):
            return [part for part in own if part.name == "decoder"]
    return own


def _encodings(part: Part) -> list:
    found: dict[int, Any] = {}
    for layer in part.layers:
        for each in layer.positional.queries_keys if layer.positional else ():
            found[id(each)] = each
    return list(found.values())


def _rotation(part: Part):
    return next(iter(_encodings(part)), None)


def _longest(setup: PositionalSetup) -> int:
    lengths = [part.trained_length for part in setup if part.trained_length]
    return min(lengths, default=1 << 20)


def _inputs(
    model: nn.Module, axes: int, longest: int, rotates: bool
) -> tuple[dict[str, Any], Tensor]:
    names = inspect.signature(model.forward).parameters
    positions = torch.tensor(POSITIONS)
    if longest <= POSITIONS[-1] or "position_ids" not in names or not rotates:
        positions = torch.arange(min(len(POSITIONS), longest))
    if axes and "position_ids" in names:
        spread = [positions, positions.flip(0), positions * 7 % 501, positions // 2]
        positions = torch.stack(spread[:axes], -1)
        positions[0] = 0
    ids = torch.full((1, len(positions)), TOKEN)
    found: dict[str, Any] = {}
    for name in ("input_ids", "decoder_input_ids"):
        if name in names:
            found[name] = ids
    if "position_ids" in names and rotates:  # all axes
        found["position_ids"] = positions[None] if positions.ndim == 1 else positions.T[:, None]
    if "attention_mask" in names:  # without it, jumps of positions are taken for new documents
        found["attention_mask"] = torch.ones_like(ids)
    if "use_cache" in names:
        found["use_cache"] = False
    return found, positions


def _layer(
    part: Part,
    index: int,
    layer: LayerSetup,
    record: Record,
    positions: Tensor,
    model: nn.Module,
) -> tuple[list[str], list[str]]:
    """What differs in one layer, and the place of each comparison that was made."""
    if layer.positional is None:
        return [], []
    indexer = part.name == "indexer"
    here = lambda path: layer_of(path) == index and ("indexer" in path) == indexer  # noqa: E731
    rotated = [each for each in record.rotated if here(each.path)]
    attended = [each for each in record.attended if here(each.path)]
    found, checks = [], []
    held = layer.positional
    rotation = next(
        (e for e in held.queries_keys if isinstance(e, Rotary | MultimodalRotary)), None
    )
    if pairs_of(rotated):
        checks.append("queries_keys")
        found.append(rotation_differs(rotation, rotated, positions))
    if indexer:
        return [each for each in found if each], checks
    bias = next((each for each in held.scores if isinstance(each, ALiBi | T5Bias)), None)
    for seen in attended:
        if not seen.constant or seen.scores.shape[-2:] != (len(positions),) * 2:
            continue
        if bias is not None:
            checks.append("scores")
            found.append(bias_differs(bias, seen.scores, positions, index, model))
            continue
        if held.scores:
            continue
        if held.tokens and rotation is None:
            continue  # what is added to the tokens is in the products
        if not permuted(rotated, positions):
            checks.append("queries_keys")
            found.append(scores_differ(list(held.queries_keys), seen, positions))
        scale = scale_of(seen, len(positions))
        if scale is not None and layer.softmax_scale is not None:
            checks.append("scale")
            if part.model_type not in SCALED_BEFORE and abs(scale / layer.softmax_scale - 1) > 1e-3:
                found.append(f"softmax scale {scale:.6g}, read {layer.softmax_scale:.6g}")
    for tokens in held.tokens if index == 0 else ():
        checks.append("tokens")
        found.append(tokens_differ(tokens, record, positions, model))
    if rotation is not None and not checks and part.model_type not in LOOPED:
        return ["it is said to rotate, and nothing was seen"], []
    return [each for each in found if each], checks


def bias_differs(
    bias: ALiBi | T5Bias, scores: Tensor, positions: Tensor, index: int, model: nn.Module
) -> str | None:
    """What is wrong with a bias: the differences that scores of equal contents have."""
    scores = scores.reshape(-1, *scores.shape[-2:]).double()
    if isinstance(bias, T5Bias):
        weights = [
            m.weight
            for n, m in model.named_modules()
            if n.endswith("relative_attention_bias") and isinstance(m, nn.Embedding)
        ]
        weights = weights[index:] if len(weights) > index else weights
        bias = T5Bias(bias.heads, bias.buckets, bias.max_distance, bias.bidirectional)
        with torch.no_grad():
            bias.weight.copy_(weights[0] if weights[0].shape == bias.weight.shape else weights[0].T)
    ours = bias.table(positions, positions).double()
    if ours.shape != scores.shape:
        return f"biases have shape {tuple(ours.shape)}, scores {tuple(scores.shape)}"
    left = scores - ours
    seen = scores > -1e4
    # What a whole row has in common, softmax takes out: Bloom counts from the first key.
    low = left.masked_fill(~seen, float("inf")).amin(-1)
    high = left.masked_fill(~seen, float("-inf")).amax(-1)
    apart = (high - low).max() / ours.abs().max()
    return f"biases differ by {float(apart):.2g}" if apart > 1e-3 else None


def tokens_differ(
    tokens: Learned | Sinusoidal, record: Record, positions: Tensor, model: nn.Module
) -> str | None:
    """What is wrong with an encoding of tokens: the table and the rows that were looked up."""
    if isinstance(tokens, Learned):
        rows = tokens.max_len + tokens.offset
        for path, indices, weight in record.looked_up:
            if weight.shape == (rows, tokens.dim) and "word" not in path:
                flat = indices.flatten()[: len(positions)]
                if torch.equal(flat, positions + tokens.offset):
                    return None
        tables = {p: tuple(w.shape) for p, _, w in record.looked_up}
        return f"no table of {rows} × {tokens.dim} was looked up from {tokens.offset}: {tables}"
    return sines_differ(tokens, model)


def sines_differ(tokens: Sinusoidal, model: nn.Module) -> str | None:
    """What is wrong with sines and cosines: no tensor of the model holds them."""
    for _, table in _tables(model):
        if table.ndim < 2 or table.shape[-1] != tokens.dim:
            continue
        table = table.detach().double().reshape(-1, tokens.dim)
        rows = torch.arange(min(len(table), 200))
        ours = Sinusoidal(tokens.dim, tokens.base, tokens.convention.name).table(
            rows, dtype=torch.float64
        )
        if float((ours[3:] - table[3 : len(rows)]).abs().max()) < 2e-3:
            return None
    return "no table of sines and cosines is this one"


def _tables(model: nn.Module):
    for name, module in model.named_modules():
        for key, value in {**vars(module), **module._buffers, **module._parameters}.items():
            if isinstance(value, Tensor):
                yield f"{name}.{key}", value


__all__ = ["Positional", "Verdict", "verdict"]
