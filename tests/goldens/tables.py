"""Tables of fixed encodings at near, far, negative and real positions: correctly rounded.

To the bit up to float32; float64 is promised within 3 ulp. What is computed by matrix products, or
from parameters, is among the encodings.
"""

from fractions import Fraction
from functools import partial
from typing import Any

import torch
from tests.goldens.encodings import FAR, NEAR, battery, reached, rounded
from tests.goldens.held import numbers, settled
from torch import Tensor

from posenc import QueryKeyEncoding, Rotary, TokenEncoding
from posenc.frequencies import (
    NTK,
    ByLength,
    Clipped,
    Divided,
    DynamicNTK,
    DyNTK,
    DyYaRN,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    NTKByParts,
    Powers,
    Proportional,
    Resonance,
    RIFLEx,
    TurnsPerUnit,
    YaRN,
)
from posenc.positions import Coordinates
from posenc.testing import Case

BOUND = 1e-14
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
BEYOND_FLOAT16 = {
    "PerceiverFeatures perceiver", "ALiBi alibi", "ALiBi alibi-6", "ALiBi alibi-slopes",
    "some_heads alibi-of-some-heads",
}  # fmt: skip


def at(module: Any, where: Any, dtype: torch.dtype) -> Tensor:
    if isinstance(module, TokenEncoding | QueryKeyEncoding):
        return module.table(where, dtype=dtype)
    return module.table(where, where, dtype=dtype)


def of_battery(name: str, case: Case) -> dict[str, Tensor]:
    module = settled(case.module(), torch.float32)
    lift = case.lift or (lambda positions: positions)
    places: dict[str, Any] = {"far": reached(name, case)}
    if module.takes_reals:
        places["thirds"] = Coordinates(lift(NEAR), scale=Fraction(1, 3))
        places["floats"] = Coordinates(lift(NEAR) * 0.1)
    return {
        f"{place} {dtype}": at(module, where, dtype)
        for place, where in places.items()
        for dtype in DTYPES
        if not (dtype is torch.float16 and place == "far" and name in BEYOND_FLOAT16)
    }


def of_schedule(schedule: Any) -> dict[str, Tensor]:
    made = {str(dtype): Rotary(schedule).table(FAR, dtype=dtype) for dtype in DTYPES}
    return made | {"factor": torch.tensor(schedule.attention_factor, dtype=torch.float64)}


PLAIN, LONG = (
    Geometric(16),
    LongRoPE(Geometric(8), (1.0, 1.1, 1.3, 2.0), (2.0, 4.0, 9.0, 30.0), 4096, 32.0),
)
SCHEDULES = {
    "Geometric": Geometric(16, 5e5), "Powers": Powers(100.0, (0, 2, 3), 4),
    "NTK": NTK(PLAIN, 4.0), "DynamicNTK": DynamicNTK(PLAIN, 2.0, 4096).at(9000),
    "Linear": Linear(PLAIN, 4.0), "Llama3": Llama3(Geometric(32, 5e5)),
    "YaRN": YaRN(PLAIN, 16.0, 4096),
    "YaRN mscale": YaRN(PLAIN, 4.0, 4096, truncate=False, mscale=0.7, mscale_all_dim=1.0),
    "LongRoPE short": LONG.at(4096), "LongRoPE long": LONG.at(4097),
    "ByLength": ByLength.yarn(Geometric(16, 1e6), trained_length=32768).at(100_000),
    "NTKByParts": NTKByParts(PLAIN, 4.0, 64), "DyNTK": DyNTK(PLAIN, 64).at(256, time=0.5),
    "DyYaRN": DyYaRN(PLAIN, 64).at(256, time=0.5), "Clipped": Clipped(PLAIN, 4),
    "Divided": Divided(Geometric(8), (1.0, 2.0, 3.5, 4.0), 1.25),
    "Proportional": Proportional(32, 0.25), "Resonance": Resonance(YaRN(PLAIN, 4.0, 4096)),
    "RIFLEx": RIFLEx(Geometric(16, 256.0), k=4, length=66),
    "TurnsPerUnit": TurnsPerUnit((1, 0.25, 0.1)), "FromCheckpoint": FromCheckpoint([1.0, 0.1]),
}  # fmt: skip
CASES = {
    name: partial(of_battery, name, case) for name, case in battery().items() if rounded(case)
} | {name: partial(of_schedule, schedule) for name, schedule in SCHEDULES.items()}
ARITHMETICS = {
    "float32": "half", "transformers": "half", "vllm": "half", "vllm-native": "half",
    "sglang": "half", "megatron": "half", "torchtitan": "interleaved", "torchtune": "interleaved",
    "flash-attention": "half", "llama.cpp": "half", "mlx": "half",
}  # fmt: skip


def of_arithmetic(name: str) -> dict[str, Tensor]:
    """Tables, and content rotated, in the order and the dtypes of public implementations."""
    rotary = Rotary(16, arithmetic=name, pairing=ARITHMETICS[name])  # type: ignore[arg-type]
    made = {}
    for dtype in (torch.float32, torch.bfloat16):
        table = rotary.table(torch.tensor([0, 1, 2, 77, 1000, 2**20 + 7]))
        q = numbers(1, 2, 6, 16, dtype=dtype)
        made |= {f"table {dtype}": table, f"q {dtype}": rotary.encode_queries(q, table)}
    return made


CASES |= {f"Rotary {name}": partial(of_arithmetic, name) for name in ARITHMETICS}
