"""Rotary files of trainers and servers, run as they are on a CPU.

What they import beside them is stood in for; none of these lines touches a number. ``make engines``
installs the packages without what they depend on, and runs the tests that use this.
"""

import importlib.util
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

Beside = Mapping[str, Mapping[str, Any]]


def files(package: str, names: tuple[str, ...], beside: Beside) -> list[ModuleType]:
    """The modules of such dotted names, each run from its own file; skips without the package."""
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        pytest.skip(f"{package} is not installed; pip install --no-deps is enough")
    root = Path(next(iter(found.submodule_search_locations))).parent
    with pytest.MonkeyPatch.context() as patched:  # sys.modules is afterwards as it was
        for name, values in beside.items():
            _place(name, patched).__dict__.update(values)
        return [_run(root, name, patched) for name in names]


def _place(name: str, patched: pytest.MonkeyPatch) -> ModuleType:
    """A module of this name without content, in packages without content."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        if path not in sys.modules:
            patched.setitem(sys.modules, path, ModuleType(path))
            sys.modules[path].__path__ = []
    return sys.modules[name]


def _run(root: Path, name: str, patched: pytest.MonkeyPatch) -> ModuleType:
    _place(name, patched)
    path = root.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patched.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def _no(*_: Any, **__: Any) -> bool:
    return False


def _as_it_is(thing: Any) -> Any:
    return thing


class _Nothing:
    """Answers every question with no, and every call too."""

    def __getattr__(self, _: str) -> Any:
        return _no


class _Operation(nn.Module):
    """vLLM's CustomOp and SGLang's BaseFusedOp: a module, with a register of names."""

    def __init__(self, **_: Any) -> None:
        super().__init__()

    @staticmethod
    def register(_: str) -> Any:
        return _as_it_is

    @staticmethod
    def enabled() -> bool:
        return False


@cache
def vllm() -> dict[str, type]:
    """Its rotary modules by class name."""
    folder = "vllm.model_executor.layers.rotary_embedding"
    names = ("common", "base", "linear_scaling_rope", "llama3_rope", "yarn_scaling_rope",
             "dynamic_ntk_scaling_rope")  # fmt: skip
    beside = {
        "vllm._aiter_ops": {"rocm_aiter_ops": _Nothing()},
        "vllm.logger": {"init_logger": lambda _: _Nothing()},
        "vllm.model_executor.custom_op": {"CustomOp": _Operation},
        "vllm.platforms": {"current_platform": _Nothing()},
        "vllm.utils.torch_utils": {"direct_register_custom_op": _no},
    }
    return _classes(files("vllm", tuple(f"{folder}.{name}" for name in names), beside))


@cache
def sglang() -> dict[str, type]:
    """Its rotary modules by class name, as they are built for CUDA."""
    folder = "sglang.srt.layers.rotary_embedding"
    questions = ("cpu_has_amx_support", "get_bool_env_var", "is_cpu", "is_hip", "is_mps", "is_musa",
                 "is_npu", "is_xpu")  # fmt: skip
    beside = {
        "sglang.kernels.fused_op": {"BaseFusedOp": _Operation},
        "sglang.kernels.ops.attention.rope": {"apply_rope_with_cos_sin_cache_inplace": None},
        "sglang.srt.environ": {"envs": _Nothing()},
        "sglang.srt.platforms": {"current_platform": _Nothing()},
        "sglang.srt.runtime_context": {"get_exec": None, "publish_role": lambda: None},
        "sglang.srt.utils": {
            **dict.fromkeys(questions, _no),
            "is_cuda": lambda: True,
            "get_device": lambda: "cpu",
            "get_compiler_backend": lambda: "eager",
        },
    }
    names = ("utils", "base", "yarn", "rope_variant")
    return _classes(files("sglang", tuple(f"{folder}.{name}" for name in names), beside))


@cache
def megatron() -> dict[str, Any]:
    """Its rotary modules by class name, and the function that rotates."""
    folder = "megatron.core.models.common.embeddings"
    beside = {
        "megatron.core.parallel_state": {"get_context_parallel_group": lambda **_: None},
        "megatron.core.transformer": {"TransformerConfig": object},
        "megatron.core.utils": {"deprecate_inference_params": None, "internal_api": _as_it_is},
    }
    names = ("rope_utils", "rotary_pos_embedding", "yarn_rotary_pos_embedding")
    found = files("megatron", tuple(f"{folder}.{name}" for name in names), beside)
    return {**_classes(found), "rotate": found[0]._apply_rotary_pos_emb_bshd}


@cache
def torchtitan() -> dict[str, type]:
    """Its rotary modules by class name."""

    class Module(nn.Module):
        @dataclass(kw_only=True, slots=True)
        class Config:
            pass

    marks = {
        "no_typecheck": lambda: _as_it_is, "local_map": lambda **_: _as_it_is,
        "S": int, "R": None,
    }  # fmt: skip
    beside = {"spmd_types": marks, "torchtitan.protocols.module": {"Module": Module}}
    return _classes(files("torchtitan", ("torchtitan.models.common.rope",), beside))


@cache
def torchtune() -> dict[str, type]:
    """Its rotary modules by class name."""
    names = "modules.position_embeddings", "models.llama3_1._position_embeddings"
    return _classes(files("torchtune", tuple(f"torchtune.{name}" for name in names), {}))


@cache
def flash_attention() -> dict[str, Any]:
    """Its rotary module, and the function that rotates: its Triton kernel, interpreted."""
    names = ("flash_attn.ops.triton.rotary", "flash_attn.layers.rotary")
    with pytest.MonkeyPatch.context() as interpreted:
        interpreted.setenv("TRITON_INTERPRET", "1")
        kernel, layer = files("flash_attn", names, {})
    return {**_classes([layer]), "rotate": kernel.apply_rotary}


def _classes(modules: list[ModuleType]) -> dict[str, type]:
    return {n: c for module in modules for n, c in vars(module).items() if isinstance(c, type)}


def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks for the current GPU is given the CPU, and a kernel is launched as it is."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(torch.library, "wrap_triton", _as_it_is)
