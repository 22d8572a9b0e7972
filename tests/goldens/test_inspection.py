"""The numbers of ``posenc.inspection`` stay; run this file to write ``inspection.json`` anew."""

import pytest
import torch
from tests.goldens.held import numbers, settled
from tests.goldens.written import known, near, write

from posenc import ALiBi, AxialRotary, Positional, Rotary, Sinusoidal, T5Bias
from posenc.frequencies import Geometric, Llama3, YaRN
from posenc.inspection import (
    attention,
    frequencies,
    lengths,
    model,
    precision,
    rotary,
    shift,
    similarity,
    tables,
)
from posenc.positions import grid
from posenc.transformer import Encoder

HELD = known("inspection")
PLAIN, LONG = Geometric(16, 500.0), YaRN(Geometric(16, 500.0), 8.0, 64)
Q, K, X = (numbers(2, 5, 8, seed=seed) for seed in range(3))
SOME = Sinusoidal(6, convention="per_dimension"), Sinusoidal(5, 50.0, offset=2), Sinusoidal(4)
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
LLAMA = {**SIZES, "model_type": "llama", "rope_theta": 1e4, "max_position_embeddings": 4096}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 512}  # fmt: skip
LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 1024, "rope_theta": 1e4,
            "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}  # fmt: skip
TYPES = ("bert", "bloom", "gemma3_text", "qwen2_vl", "deepseek_v3", "swin")
ENCODER = settled(Encoder(8, 2, 2, positional=Positional(Sinusoidal(8), scores=ALiBi(2))))

NUMBERS = {
    "attention": lambda: attention.attention_effect(
        Q, K, Positional(queries_keys=Rotary(8), scores=ALiBi(2))),
    "rotary scores": lambda: attention.rotary_scores(Rotary(LONG), *numbers(2, 16), 20),
    "binary": lambda: [frequencies.binary_digits(6), frequencies.sines(PLAIN, 4),
                       frequencies.period_ratio(LONG)],
    "closest": lambda: [similarity.closest_pair(each, 90) for each in SOME],
    "properties": lambda: [tables.properties_of(each, 80) for each in SOME],
    "directions": lambda: frequencies.frequency_vectors(AxialRotary(16, form="pixtral")),
    "lengths": lambda: lengths.length_statistics([3, 70, 12], trained_length=64, bias=T5Bias(2)),
    "norms": lambda: [tables.norm_shares(X[0], K[0], scale=2.0), tables.columns_that_move(X[0])],
    "order": lambda: attention.order_effect(ENCODER, X[0], [3, 0, 4, 1, 2]),
    "patches": lambda: similarity.patch_similarity(
        AxialRotary(8).table(grid(2, 3)), (2, 3), (1, 1)),
    "precision": lambda: [precision.precision_of(PLAIN, n) for n in (300, 5000)],
    "resolution": lambda: precision.resolution(Sinusoidal(8), 1500),
    "scaling": lambda: [
        frequencies.scaling_of(PLAIN, each, trained_length=64, target_length=512)
        for each in (LONG, Llama3(PLAIN, 8.0, trained_length=64), PLAIN)],
    "shift": lambda: [shift.shift_map(each, 3, length=40) for each in SOME],
    "similarity": lambda: [similarity.dot_products(SOME[1], 4, start=9),
                           similarity.dot_product_profile(SOME[0], 9, position=5),
                           precision.unique_up_to(Sinusoidal(2), 3000, dtype=torch.bfloat16)],
    **{name: lambda name=name: model.inspect_model({"model_type": name}) for name in TYPES},
    "model of a length": lambda: model.inspect_model(
        {**LLAMA, "rope_parameters": LONGROPE}, length=2000, dtype=torch.float16),
    "rotary llama3": lambda: rotary.inspect_config({**LLAMA, "rope_parameters": LLAMA3}),
    "rotary smollm3": lambda: rotary.inspect_config(
        {**LLAMA, "model_type": "smollm3"}, length=9000),
}  # fmt: skip


def plain(value):
    """As JSON would have it, layers that are alike once."""
    if isinstance(value, model.PartNumbers | rotary.ModelNumbers):
        value = vars(value) | {"layers": list(dict.fromkeys(value.layers)), "notes": None}
    if hasattr(value, "__dataclass_fields__"):
        value = vars(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | torch.Tensor):
        return [plain(each) for each in value] if getattr(value, "ndim", 1) else value.item()
    return value


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_what_they_were(name):
    assert near(plain(NUMBERS[name]()), HELD[name], relative=1e-5)


if __name__ == "__main__":
    write("inspection", {name: plain(make()) for name, make in NUMBERS.items()})
