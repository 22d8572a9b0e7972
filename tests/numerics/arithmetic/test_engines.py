"""Profiles against the own files of trainers and servers, run on a CPU (``make engines``)."""

from inspect import signature

import pytest
import torch
from tests.numerics.arithmetic import engines
from torch import Tensor

from posenc import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, Schedule, YaRN
from posenc.numerics.arithmetic import PROFILES
from posenc.numerics.pairing import Pairing

pytestmark = pytest.mark.slow("needs packages that no extra has: make engines")
DIM, ROWS, HEADS = 64, 4096, 2
LLAMA3 = {"scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "orig_max_position": 8192}  # fmt: skip

SERVERS = {
    "plain": ("RotaryEmbedding", {}, Geometric(DIM, 500_000)),
    "linear": ("LinearScalingRotaryEmbedding", {"scaling_factors": 3.0}, Linear(Geometric(DIM), 3)),
    "llama3": ("Llama3RotaryEmbedding", LLAMA3, Llama3(Geometric(DIM, 500_000))),
    "yarn": ("YaRNScalingRotaryEmbedding", {"scaling_factor": 4.0}, YaRN(Geometric(DIM), 4, ROWS)),
    # at twice its trained length, dynamic scaling by 2 is NTK by 2 · 2 − 1
    "ntk": ("DynamicNTKScalingRotaryEmbedding", {"scaling_factor": 2.0}, NTK(Geometric(DIM), 3)),
}
"""The class of vLLM and SGLang, what it is built with, and our schedule."""

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
PAIRINGS: list[Pairing] = ["half", "interleaved"]


def content(dtype: torch.dtype, seed: int = 0) -> Tensor:
    """``[1, heads, seq, head_dim]``."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, HEADS, ROWS, DIM, generator=generator).to(dtype)


def in_profile(name: str, schedule: Schedule, x: Tensor, pairing: Pairing = "half") -> Tensor:
    rotary = Rotary(schedule, pairing=pairing, arithmetic=name)
    return rotary.encode_queries(x, rotary.table(torch.arange(x.shape[2])))


def table_of(name: str, schedule: Schedule, dtype: torch.dtype) -> Tensor:
    """The kept table of a profile in the servers' layout, cosines beside sines."""
    profile = PROFILES[name]
    both = torch.cat(profile.table(torch.arange(ROWS), schedule), -1)
    return both.to(profile.kept(dtype))


def tokens(x: Tensor) -> Tensor:
    """``[seq, heads · head_dim]``, as servers have it."""
    return x[0].transpose(0, 1).flatten(1)


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, DIM)).transpose(0, 1)[None]


def server(made: dict, case: str, dtype: torch.dtype, pairing: Pairing = "half"):
    name, said, schedule = SERVERS[case]
    base = schedule.of.base if hasattr(schedule, "of") else schedule.base
    said = dict(said)
    if "max_trained_positions" in signature(made[name]).parameters:
        said["max_trained_positions"] = ROWS // 2  # vLLM is told of both lengths
    module = made[name](
        head_size=DIM, rotary_dim=DIM, max_position_embeddings=ROWS, base=base,
        is_neox_style=pairing == "half", dtype=dtype, **said,
    )  # fmt: skip
    return module, schedule


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", SERVERS)
def test_vllm_bit_for_bit(case, dtype):
    """Its cache, its native rotation, and the one in float32 that its CUDA kernel is held to."""
    made = engines.vllm()
    for pairing in PAIRINGS:
        module, schedule = server(made, case, dtype, pairing)
        assert torch.equal(module.cos_sin_cache[:ROWS], table_of("vllm", schedule, dtype))
        q, k = content(dtype), content(dtype, 1)
        turned = module.forward_native(torch.arange(ROWS), tokens(q), tokens(k))
        for x, theirs in zip((q, k), turned, strict=True):
            assert torch.equal(in_profile("vllm-native", schedule, x, pairing), heads(theirs))
        cos, sin = module.cos_sin_cache[:ROWS].chunk(2, -1)
        wide = made["ApplyRotaryEmb"].forward_static(
            q[0].transpose(0, 1), cos, sin, pairing == "half", enable_fp32_compute=True
        )
        assert torch.equal(in_profile("vllm", schedule, q, pairing), wide.transpose(0, 1)[None])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", SERVERS)
def test_sglang_keeps_the_table_of_its_profile(case, dtype):
    """Float32 on CUDA whatever the dtype; rotation is held in float32, not by its kernel."""
    module, schedule = server(engines.sglang(), case, dtype)
    assert module.cos_sin_cache.dtype == torch.float32
    assert torch.equal(module.cos_sin_cache[:ROWS], table_of("sglang", schedule, dtype))
    q = content(torch.float32)
    theirs = module.forward_native(torch.arange(ROWS), tokens(q), tokens(q))[0]
    assert torch.equal(in_profile("sglang", schedule, q), heads(theirs))


MEGATRON = {
    "plain": ({"rotary_base": 500_000}, Geometric(DIM, 500_000)),
    "linear": ({"seq_len_interpolation_factor": 3.0}, Linear(Geometric(DIM), 3)),
    "llama3": ({"rotary_base": 500_000, "rope_scaling": True}, Llama3(Geometric(DIM, 500_000))),
    "both": (
        {"rotary_base": 500_000, "rope_scaling": True, "seq_len_interpolation_factor": 3.0},
        Linear(Llama3(Geometric(DIM, 500_000)), 3),
    ),
    "yarn": (
        {"scaling_factor": 4.0, "original_max_position_embeddings": ROWS, "mscale": None},
        YaRN(Geometric(DIM), 4, ROWS),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", MEGATRON)
def test_megatron_bit_for_bit(case, dtype, monkeypatch):
    made, (said, schedule) = engines.megatron(), MEGATRON[case]
    engines.on_cpu(monkeypatch)
    for pairing in PAIRINGS if case != "yarn" else PAIRINGS[:1]:
        kind = made["YarnRotaryEmbedding" if case == "yarn" else "RotaryEmbedding"]
        module = kind(
            kv_channels=DIM, rotary_percent=1.0, rotary_interleaved=pairing == "interleaved",
            use_cpu_initialization=True, **said,
        )  # fmt: skip
        angles = module.get_emb(ROWS)
        angles, factor = angles if case == "yarn" else (angles, 1.0)
        q = content(dtype)
        theirs = made["rotate"](
            q.permute(2, 0, 1, 3), angles, rotary_interleaved=pairing == "interleaved",
            mscale=factor,
        )  # fmt: skip
        assert torch.equal(in_profile("megatron", schedule, q, pairing), theirs.permute(1, 2, 0, 3))


TUNE = {
    "plain": ("RotaryPositionalEmbeddings", 10_000, Geometric(DIM)),
    "llama3": ("Llama3ScaledRoPE", 500_000, Llama3(Geometric(DIM, 500_000))),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", TUNE)
def test_torchtune_bit_for_bit(case, dtype):
    name, base, schedule = TUNE[case]
    module, q = engines.torchtune()[name](DIM, ROWS, base), content(dtype)
    theirs = module(q.transpose(1, 2)).transpose(1, 2)
    assert torch.equal(in_profile("torchtune", schedule, q, "interleaved"), theirs)


TITAN = {
    "plain": ({"theta": 500_000.0}, Geometric(DIM, 500_000)),
    "llama": ({"theta": 500_000.0, "scaling": "llama"}, Llama3(Geometric(DIM, 500_000))),
    "yarn": (
        {"scaling": "yarn", "rope_factor": 6.0, "original_seq_len": 4096},
        YaRN(Geometric(DIM), 6, 4096, attention=1.0),
    ),
    "yarn by 1": (
        {"theta": 500_000.0, "scaling": "yarn", "rope_factor": 1.0, "original_seq_len": 4096},
        YaRN(Geometric(DIM, 500_000), 1, 4096),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", TITAN)
def test_torchtitan_bit_for_bit(case, dtype):
    """Its complex table to the bit; of complex products a compiler may fuse one with the sum."""
    made, (said, schedule) = engines.torchtitan()["ComplexRoPE"], TITAN[case]
    module = made(made.Config(dim=DIM, max_seq_len=ROWS, **said))
    cos, sin = PROFILES["torchtitan"].table(torch.arange(ROWS), schedule)
    assert torch.equal(module.cache, torch.complex(cos, sin))
    q = content(dtype)
    theirs = module(q.transpose(1, 2), q.transpose(1, 2))[0].transpose(1, 2)
    ours = in_profile("torchtitan", schedule, q, "interleaved")
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_flash_attention_bit_for_bit(dtype, monkeypatch):
    """Its cache, and its Triton kernel by the interpreter, up to the rounding at the end.

    The interpreter cuts bfloat16 off where compiled kernels round to nearest, so content of 16 bits
    is given as the same numbers in float32, and what comes is rounded here.
    """
    made = engines.flash_attention()
    engines.on_cpu(monkeypatch)
    few = 512
    q = content(dtype)[:, :, :few]
    for pairing in PAIRINGS:
        module = made["RotaryEmbedding"](DIM, base=500_000.0)
        module._update_cos_sin_cache(few, device=q.device, dtype=dtype)
        cos, sin = module._cos_cached, module._sin_cached
        theirs = made["rotate"](
            q.float().transpose(1, 2), cos, sin, interleaved=pairing == "interleaved"
        )
        ours = in_profile("flash-attention", Geometric(DIM, 500_000), q, pairing)
        assert torch.equal(ours, theirs.transpose(1, 2).to(dtype))


def test_mlx_orders_its_operations_so():
    """Its exponentials, cosines and sines are its own, so that only their order can be held."""
    mx = pytest.importorskip("mlx.core")
    q = content(torch.float32)[0, :, :1024]
    for traditional, pairing in ((False, "half"), (True, "interleaved")):
        theirs = mx.fast.rope(
            mx.array(q.tolist()), DIM, traditional=traditional, base=1e4, scale=1.0, offset=0
        )
        made = in_profile("mlx", Geometric(DIM), q[None], pairing)[0]
        assert (made - torch.tensor(theirs.tolist())).abs().max() < 5e-4
