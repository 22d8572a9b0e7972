"""Right calls of public functions that take counts, lengths, sizes or offsets."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch

from posenc import (
    AxialForm,
    DecomposedRelative,
    DirectedRotary,
    Learned,
    LearnedGrid,
    Rotary,
    Sinusoidal,
    SwinBias,
    SwinV2Bias,
    T5Bias,
    attention,
    audit,
    explain_attention,
    explorer,
    lab,
    plots,
    recipes,
    testing,
    transformer,
)
from posenc.distributed import KeyShards, Shards
from posenc.frequencies import (
    ByLength,
    DynamicNTK,
    DyNTK,
    DyYaRN,
    Geometric,
    LongRoPE,
    YaRN,
    intrinsic_frequency,
)
from posenc.inspection import attention as scores_of
from posenc.inspection import (
    binary,
    conventions,
    lengths,
    model,
    patches,
    precision,
    resolution,
    rotary,
    scaling,
    shift,
    similarity,
)
from posenc.inspection import order as order_of
from posenc.interop import exports, huggingface, serving
from posenc.interop import torch as signatures
from posenc.numerics import buckets, pairing, slopes

ANY = None
"""The least that an argument may be which takes whole numbers of any sign."""

OF_ANOTHER_KIND = "Tensor|Array|Schedule|float|Callable"
"""What may hold an int without being a count: positions, real numbers, functions."""

SLOW = {"interop.exports.onnx_program", "interop.huggingface.patch"}
"""Of these the usual call is not tried: it takes seconds, or a model."""


class Usual(NamedTuple):
    """A call that is right, with the numbers that are asked about: what is usual, and the least."""

    call: Callable
    asked: dict[str, tuple[object, int | None]]


ONES = torch.ones(4)
PLAIN, DISTANCE = Geometric(8), torch.arange(-3, 4)
SINUSOIDAL, ROTARY, TOKENS = Sinusoidal(8), Rotary(8), torch.arange(4)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "max_position_embeddings": 64,
}
EXTENDED = LLAMA | {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}
LONGROPE = LongRoPE(PLAIN, (1.0,) * 4, (2.0,) * 4, 64)
BY_LENGTH = ByLength.yarn(PLAIN, 64)
TABLES = serving.RequestTables(ROTARY, BY_LENGTH)
ENCODER = transformer.Encoder(8, 2, 1).eval()
DECODER = transformer.Encoder(8, 2, 1, is_causal=True).eval()
Q = torch.ones(1, 2, 3, 8)


def filled() -> transformer.KeyValueCache:
    cache = transformer.KeyValueCache()
    with torch.no_grad():
        DECODER(torch.ones(1, 3, 8), cache=cache)
    return cache


def drawn(draw: Callable, *given, **named) -> None:
    plt.close(draw(*given, **named).figure)


def saved(dpi: object) -> None:
    figure = plt.figure(figsize=(0.2, 0.2))
    try:
        plots.save(figure, BytesIO(), "png", dpi=dpi)
    finally:
        plt.close(figure)


LENGTH = {"length": (4, 1)}

USUAL = {
    "attention": Usual(partial(attention, Q, Q, Q), {"window": (2, 1)}),
    "explain_attention": Usual(partial(explain_attention, Q, Q, Q), {"window": (2, 1)}),
    "encodings.tokens.Learned.resized": Usual(Learned(2, 3).resized, {"max_len": (4, 1)}),
    "encodings.tokens.LearnedGrid.from_weight": Usual(
        lambda size, prefix: LearnedGrid.from_weight(
            torch.ones(5, 2), size=(size, 2), prefix=prefix
        ),
        {"size": (2, 1), "prefix": (1, 0)},
    ),
    "encodings.tokens.LearnedGrid.from_state_dict": Usual(
        lambda size, prefix: LearnedGrid.from_state_dict(
            {"pos_embed": torch.ones(5, 2)}, size=(size, 2), prefix=prefix
        ),
        {"size": (2, 1), "prefix": (1, 0)},
    ),
    "encodings.tokens.LearnedGrid.resampled": Usual(
        lambda size: LearnedGrid(2, (2, 2)).resampled((size, 2)), {"size": (3, 1)}
    ),
    "encodings.tokens.LearnedGrid.resized": Usual(
        lambda size: LearnedGrid(2, (2, 2)).resized((2, size)), {"size": (3, 1)}
    ),
    "encodings.queries_keys.AxialForm.widths": Usual(
        AxialForm("mine", axes="yx", formula="[y | x]", split=lambda dim: (dim // 2,) * 2).widths,
        {"head_dim": (8, 1)},
    ),
    "encodings.queries_keys.DirectedRotary.golden_gate": Usual(
        DirectedRotary.golden_gate, {"head_dim": (8, 1), "axes": (2, 1), "heads": (2, 1)}
    ),
    "encodings.queries_keys.DirectedRotary.spiral": Usual(
        DirectedRotary.spiral, {"head_dim": (16, 1), "directions": (4, 1)}
    ),
    "encodings.scores.DecomposedRelative.resized": Usual(
        DecomposedRelative(2, 8, 2).resized, {"size": (3, 1)}
    ),
    "encodings.scores.SwinBias.resized": Usual(SwinBias(2, 2).resized, {"window": (3, 1)}),
    "encodings.scores.SwinV2Bias.resized": Usual(SwinV2Bias(2, 2).resized, {"window": (3, 1)}),
    "frequencies.ByLength.yarn": Usual(
        lambda trained_length: ByLength.yarn(PLAIN, trained_length), {"trained_length": (64, 1)}
    ),
    "frequencies.ByLength.longrope": Usual(
        partial(ByLength.longrope, LONGROPE), {"longest": (128, 65)}
    ),
    "frequencies.ByLength.index": Usual(BY_LENGTH.index, LENGTH),
    "frequencies.ByLength.at": Usual(BY_LENGTH.at, LENGTH),
    "frequencies.ByLength.key": Usual(BY_LENGTH.key, LENGTH),
    "frequencies.DyNTK.at": Usual(partial(DyNTK(PLAIN, 64).at, time=0.5), LENGTH),
    "frequencies.DyYaRN.at": Usual(partial(DyYaRN(PLAIN, 64).at, time=0.5), LENGTH),
    "frequencies.DynamicNTK.at": Usual(DynamicNTK(PLAIN, 1.0, 64).at, LENGTH),
    "frequencies.LongRoPE.at": Usual(LONGROPE.at, LENGTH),
    "frequencies.intrinsic_frequency": Usual(
        partial(intrinsic_frequency, PLAIN), {"frames": (4, 1)}
    ),
    "distributed.KeyShards": Usual(KeyShards, {"run": (4, 1)}),
    "distributed.KeyShards.kept": Usual(
        lambda first, count: KeyShards().kept(first, count, torch.device("cpu")),
        {"first": (2, ANY), "count": (3, 0)},
    ),
    "distributed.Shards": Usual(
        lambda length=4, lengths=3: Shards(length=length, lengths=[lengths, 2]),
        {"length": (4, 1), "lengths": (3, 0)},
    ),
    "distributed.Shards.cut": Usual(lambda dim: Shards(length=4).cut(ONES, dim), {"dim": (0, -1)}),
    "distributed.Shards.join": Usual(
        lambda dim: Shards(length=4).join(ONES, dim), {"dim": (0, -1)}
    ),
    "distributed.Shards.of_rank": Usual(
        lambda rank: Shards(length=4).of_rank(rank), {"rank": (0, 0)}
    ),
    "transformer.BatchNorm": Usual(transformer.BatchNorm, {"dim": (4, 1)}),
    "transformer.BertEmbeddings": Usual(
        transformer.BertEmbeddings,
        {
            "dim": (4, 1),
            "num_embeddings": (5, 1),
            "max_len": (6, 1),
            "types": (2, 1),
            "padding_idx": (0, -5),
        },
    ),
    "transformer.KeyValueCache.layer": Usual(
        lambda index: transformer.KeyValueCache().layer(index), {"index": (0, 0)}
    ),
    "transformer.KeyValueCache.crop": Usual(
        lambda length: filled().crop(length), {"length": (2, 0)}
    ),
    "transformer.KeyValueCache.repeat": Usual(lambda n: filled().repeat(n), {"n": (2, 1)}),
    "transformer.LayerCache.crop": Usual(
        lambda length: filled().layer(0).crop(length), {"length": (2, 0)}
    ),
    "transformer.Tables": Usual(transformer.Tables, {"most": (4, 0)}),
    "interop.exports.arrays": Usual(
        partial(exports.arrays, LLAMA), {"longest": (4, 1), "length": (4, 1)}
    ),
    "interop.exports.onnx_program": Usual(
        lambda longest=2, heads=2, kv_heads=1: exports.onnx_program(
            ROTARY, longest=longest, heads=(heads, kv_heads)
        ),
        {"longest": (2, 1), "heads": (2, 1), "kv_heads": (1, 1)},
    ),
    "interop.huggingface.multimodal_positions": Usual(
        lambda frames=1, height=2: huggingface.multimodal_positions(
            {"model_type": "qwen2_vl"}, [0, 1, 1, 0], image_grids=[(frames, height, 4)]
        ),
        {"frames": (1, 1), "height": (2, 1)},
    ),
    "interop.huggingface.patch": Usual(partial(huggingface.patch, torch.nn.Identity()), LENGTH),
    "interop.huggingface.positional_setup": Usual(
        partial(huggingface.positional_setup, LLAMA), LENGTH
    ),
    "interop.huggingface.rope_dictionary": Usual(
        partial(huggingface.rope_dictionary, PLAIN), {"head_dim": (8, 1)}
    ),
    "interop.huggingface.rotaries_from_config": Usual(
        partial(huggingface.rotaries_from_config, LLAMA), LENGTH
    ),
    "interop.huggingface.rotary_from_config": Usual(
        partial(huggingface.rotary_from_config, LLAMA), LENGTH
    ),
    "interop.serving.RequestTables.request": Usual(TABLES.request, {"longest": (4, 1)}),
    "interop.torch.RotaryPositionalEmbeddings": Usual(
        signatures.RotaryPositionalEmbeddings,
        {"dim": (8, 1), "max_seq_len": (4, 1)},
    ),
    "inspection.attention.rotary_scores": Usual(
        lambda length: scores_of.rotary_scores(Rotary(4), ONES, ONES, length), {"length": (4, 0)}
    ),
    "inspection.binary.binary_digits": Usual(
        binary.binary_digits, {"length": (4, 0), "bits": (2, 1)}
    ),
    "inspection.binary.sines": Usual(partial(binary.sines, PLAIN), {"length": (4, 0)}),
    "inspection.conventions.properties_of": Usual(
        partial(conventions.properties_of, SINUSOIDAL), {"length": (4, 2)}
    ),
    "inspection.lengths.length_statistics": Usual(
        lambda length, trained_length: lengths.length_statistics(
            [3, length], trained_length=trained_length, bias=T5Bias(2)
        ),
        {"length": (4, 0), "trained_length": (2, 1)},
    ),
    "inspection.model.inspect_model": Usual(partial(model.inspect_model, LLAMA), LENGTH),
    "inspection.order.both_orders": Usual(
        lambda order=2: order_of.both_orders(ENCODER, torch.ones(3, 8), [order, 1, 0]),
        {"order": (2, 0)},
    ),
    "inspection.order.order_effect": Usual(
        lambda order=2: order_of.order_effect(ENCODER, torch.ones(3, 8), [order, 1, 0]),
        {"order": (2, 0)},
    ),
    "inspection.patches.patch_similarity": Usual(
        lambda size, patch: patches.patch_similarity(
            SINUSOIDAL.table(TOKENS), (size, 2), (patch, 0)
        ),
        {"size": (2, 1), "patch": (1, 0)},
    ),
    "inspection.precision.precision_of": Usual(partial(precision.precision_of, PLAIN), LENGTH),
    "inspection.resolution.resolution": Usual(
        partial(resolution.resolution, SINUSOIDAL), {"length": (4, 0)}
    ),
    "inspection.rotary.inspect_config": Usual(partial(rotary.inspect_config, LLAMA), LENGTH),
    "inspection.scaling.scaling_of": Usual(
        partial(scaling.scaling_of, PLAIN, YaRN(PLAIN, 2.0, 64)),
        {"trained_length": (64, 1), "target_length": (128, 1)},
    ),
    "inspection.shift.shift_map": Usual(
        partial(shift.shift_map, SINUSOIDAL), {"offset": (2, ANY), "length": (4, 1)}
    ),
    "inspection.similarity.dot_products": Usual(
        partial(similarity.dot_products, SINUSOIDAL), {"length": (4, 0), "start": (1, ANY)}
    ),
    "inspection.similarity.dot_product_profile": Usual(
        partial(similarity.dot_product_profile, SINUSOIDAL),
        {"length": (4, 1), "position": (1, ANY)},
    ),
    "inspection.similarity.closest_pair": Usual(
        partial(similarity.closest_pair, SINUSOIDAL), {"length": (4, 2)}
    ),
    "inspection.similarity.unique_up_to": Usual(
        partial(similarity.unique_up_to, SINUSOIDAL), {"length": (4, 0)}
    ),
    "plots.bias": Usual(
        lambda heads: drawn(plots.bias, [[0.0, 1.0]], [0, 1], heads=[heads]), {"heads": (3, ANY)}
    ),
    "plots.binary_comparison": Usual(
        partial(drawn, plots.binary_comparison, [[0.0], [0.8]]), {"bits": (2, 1)}
    ),
    "plots.costs": Usual(
        lambda parameters: drawn(plots.costs, {"mine": [1.0]}, {"mine": parameters}),
        {"parameters": (3, 0)},
    ),
    "plots.curves": Usual(
        lambda dimension=1, start=0: drawn(
            plots.curves, [[0.0, 1.0]], dimensions=[dimension], start=start
        ),
        {"dimension": (1, 0), "start": (3, ANY)},
    ),
    "plots.distance_profile": Usual(
        partial(drawn, plots.distance_profile, [0.0, 1.0]), {"first": (3, ANY)}
    ),
    "plots.error_curve": Usual(
        lambda position: drawn(plots.error_curve, {"mine": {position: 0.5, 9: 0.1}}),
        {"position": (3, 0)},
    ),
    "plots.grid_channels": Usual(
        lambda size=2, channel=0, columns=8: drawn(
            plots.grid_channels, [[0.0], [0.8]], (1, size), channels=[channel], columns=columns
        ),
        {"size": (2, 1), "channel": (0, 0), "columns": (8, 1)},
    ),
    "plots.heatmap": Usual(
        partial(drawn, plots.heatmap, [[0.0, 1.0]]),
        {"start": (3, ANY), "first_column": (1, ANY), "each": (2, 1), "dpi": (50, 1)},
    ),
    "plots.patch_similarity": Usual(
        lambda patch=0, columns=2: drawn(
            plots.patch_similarity, {"mine": [[0.0, 1.0]]}, (0, patch), columns=columns
        ),
        {"patch": (1, 0), "columns": (2, 1)},
    ),
    "plots.phasors": Usual(
        partial(drawn, plots.phasors, [1.0, 0.0], [0.0, 1.0]), {"position": (3, ANY)}
    ),
    "plots.rotary_score": Usual(
        partial(drawn, plots.rotary_score, [0.0, 1.0]), {"first": (3, ANY)}
    ),
    "plots.save": Usual(saved, {"dpi": (50, 1)}),
    "plots.scaling": Usual(
        partial(drawn, plots.scaling, [6.0, 60.0], {"mine": [6.0, 120.0]}),
        {"trained_length": (64, 1)},
    ),
    "plots.shift_map": Usual(
        partial(drawn, plots.shift_map, [[1.0]], residual=0.0), {"offset": (3, ANY)}
    ),
    "plots.similarity_matrix": Usual(
        partial(drawn, plots.similarity_matrix, [[1.0]]), {"start": (3, ANY)}
    ),
    "plots.wavelengths": Usual(
        partial(drawn, plots.wavelengths, {"mine": [6.0, 60.0]}),
        {"trained_length": (64, 1), "target_length": (128, 1)},
    ),
    "testing.Case": Usual(
        partial(testing.Case, Rotary),
        {"limit": (8, 1), "heads": (4, 1), "kv_heads": (2, 1), "head_dim": (8, 1)},
    ),
    "audit.check": Usual(
        partial(audit.check, torch.nn.Identity, only=["decodes-as-it-prefills"]),
        {"dim": (8, 1), "length": (16, 1)},
    ),
    "audit.parity": Usual(
        partial(audit.parity, "transformers", "vllm", encoding=ROTARY),
        {"length": (4, 1), "layer": (0, 0), "seed": (0, 0)},
    ),
    "explorer.Explorer": Usual(explorer.Explorer, {"height": (400, 1)}),
    "explorer.show": Usual(explorer.show, {"height": (400, 1)}),
    "lab.Configuration": Usual(
        lambda layer=1, **numbers: lab.Configuration(
            *("copy", numbers.pop("task_version", 1), {}, (), (layer,), ""),
            *(lab.ModelSize(), lab.Training()),
            **numbers,
        ),
        {"task_version": (1, 0), "layer": (1, 0), "seed": (0, ANY), "format": (1, 0)},
    ),
    "lab.Extension": Usual(partial(lab.Extension, "", (), ""), {"factor": (2, 1), "steps": (2, 0)}),
    "lab.ModelSize": Usual(lab.ModelSize, {"dim": (8, 1), "heads": (2, 1), "depth": (1, 1)}),
    "lab.Task": Usual(
        lambda trained, tested: lab.TASKS["copy"](trained, (trained, tested)),
        {"trained": (4, 1), "tested": (8, 1)},
    ),
    "lab.Training": Usual(
        lab.Training,
        {"steps": (2, 1), "batch": (2, 1), "warm_up": (1, 0), "examined": (2, 1)},
    ),
    "lab.Training.rate": Usual(lab.Training().rate, {"step": (0, 0)}),
    "numerics.buckets.t5_buckets": Usual(
        partial(buckets.t5_buckets, DISTANCE), {"buckets": (8, 1), "max_distance": (16, 1)}
    ),
    "numerics.buckets.t5_borders": Usual(
        partial(buckets.t5_borders, bidirectional=True),
        {"buckets": (8, 1), "max_distance": (16, 1)},
    ),
    "numerics.buckets.deberta_buckets": Usual(
        partial(buckets.deberta_buckets, DISTANCE), {"buckets": (8, 1), "max_distance": (16, 1)}
    ),
    "numerics.buckets.deberta_ends": Usual(
        buckets.deberta_ends, {"buckets": (8, 1), "max_distance": (16, 1)}
    ),
    "numerics.pairing.permutation": Usual(
        partial(pairing.permutation, to="half"), {"rotated_dim": (4, 1), "head_dim": (4, 1)}
    ),
    "numerics.pairing.convert_channels": Usual(
        partial(pairing.convert_channels, TOKENS, "half"), {"rotated_dim": (4, 1)}
    ),
    "numerics.pairing.convert_projection": Usual(
        partial(pairing.convert_projection, TOKENS, "half"),
        {"head_dim": (4, 1), "rotated_dim": (4, 1)},
    ),
    "numerics.pairing.convert_fused": Usual(
        partial(pairing.convert_fused, torch.arange(12), "half", order="grouped"),
        {"heads": (1, 1), "head_dim": (4, 1), "kv_heads": (1, 1), "rotated_dim": (4, 1)},
    ),
    "numerics.slopes.geometric": Usual(slopes.geometric, {"heads": (4, 1)}),
    "numerics.slopes.alibi": Usual(slopes.alibi, {"heads": (4, 1)}),
}


def whole_numbers(function: Callable) -> dict[str, object]:
    """The arguments that are whole numbers, or several of them, with what stands in their place."""
    told = {
        name: (inspect.formatannotation(parameter.annotation), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    return {
        name: default
        for name, (text, default) in told.items()
        if re.search(r"\bint\b", text)
        and not re.search("Tensor|Array|Schedule|float|Callable", text)
    }


def of_recipe(name: str) -> Usual:
    """Each number alone, the others as of the model; several of them by the first."""
    asked = whole_numbers(recipe := getattr(recipes, name))

    def call(**odd):
        for argument, usual in asked.items():
            if argument in odd and isinstance(usual, tuple):
                odd[argument] = (odd[argument], *usual[1:])
        return recipe(**odd)

    firsts = {key: usual[0] if isinstance(usual, tuple) else usual for key, usual in asked.items()}
    return Usual(call, {key: (usual, 1) for key, usual in firsts.items()})


USUAL |= {f"recipes.{name}": of_recipe(name) for name in recipes.__all__}

SEVERAL = {
    "recipes.ast": lambda size: recipes.ast(size=size),
    "distributed.Shards": lambda lengths: Shards(lengths=lengths),
    "encodings.tokens.LearnedGrid.resized": LearnedGrid(2, (2, 2)).resized,
    "frequencies.ByLength.yarn": lambda factors: ByLength.yarn(PLAIN, 64, factors),
    "inspection.lengths.length_statistics": lengths.length_statistics,
    "inspection.order.both_orders": partial(order_of.both_orders, ENCODER, torch.ones(3, 8)),
    "inspection.order.order_effect": partial(order_of.order_effect, ENCODER, torch.ones(3, 8)),
    "inspection.patches.patch_similarity": partial(
        patches.patch_similarity, SINUSOIDAL.table(TOKENS), patch=(0, 0)
    ),
    "interop.huggingface.multimodal_positions": lambda grids: huggingface.multimodal_positions(
        {"model_type": "qwen2_vl"}, [0, 1], image_grids=grids
    ),
    "interop.serving.requests_from_config": partial(serving.requests_from_config, EXTENDED),
    "plots.bias": lambda heads: plots.bias([[0.0, 1.0]], [0, 1], heads=heads),
    "plots.curves": lambda dimensions: plots.curves([[0.0, 1.0]], dimensions=dimensions),
    "plots.grid_channels": lambda size: plots.grid_channels([[0.0], [0.8]], size),
    "plots.patch_similarity": partial(plots.patch_similarity, {"mine": [[0.0, 1.0]]}),
    "recipes.dinov3": lambda grid: recipes.dinov3(grid=grid),
    "recipes.eva02": lambda grid: recipes.eva02(grid=grid),
}
"""Calls that take several numbers at once, by these."""
