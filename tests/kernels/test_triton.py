"""Triton kernels: interpreted on the CPU, and compiled ahead of time for accelerators.

No accelerator is needed for either, and no speed is claimed by them.
"""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
triton = pytest.importorskip("triton")

NVIDIA, AMD = ("cuda", 90, 32), ("hip", "gfx942", 64)
SINCOS = {"FREQUENCIES": 64, "ROWS": 8, "BLOCK": 64}
ADDITION = {"WITH_TABLE": True, "WITH_IDS": False, "WITH_POSITIONS": True, "ELEMENTS": 2048,
            "COUNTERS": 16, "WORDS": 4, "ROUNDS": 7}  # fmt: skip
ROTARY = {"LOOKED_UP": True, "WITH_KEYS": True, "PAIRS": 64, "BEGIN": 0, "WIDTH": 128,
          "PER_HEAD": False, "HEADS": 32, "BLOCK": 64, "REST": 0, "SIGN": -1}  # fmt: skip
NUMBERS = {"cos": "*fp32", "sin": "*fp32", "positions": "*i64"}
HEADS = "q", "q_out", "k", "k_out"
UNALIGNED = {"scale_bits", "rescale_bits", "factor_bits", "threshold", "key"}


@pytest.mark.slow("Triton's interpreter runs every kernel")
def test_the_interpreter_finds_the_bits_of_the_reference():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    words = ["-m", "pytest", "-n0", "tests/kernels/interpreted", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) > 50
    assert "skipped" not in ran.stdout


def compiled(kernel, constants, pointers, target):
    """The kernel's code for a target, its integers of 64 bits and its pointers aligned."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    assert set(constants) <= set(names)
    free = [name for name in names if name not in constants]
    signature = {name: pointers.get(name, "i64") for name in free}
    source = ASTSource(
        fn=kernel,
        signature=signature | dict.fromkeys(constants, "constexpr"),
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={
            (names.index(name),): [["tt.divisibility", 16]]
            for name in free
            if name not in UNALIGNED
        },
    )
    return triton.compile(source, target=GPUTarget(*target), options={"enable_fp_fusion": False})


@pytest.fixture(autouse=True)
def _compiled_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def check(kernel, constants, pointers):
    """It compiles for both makers; products and sums stay apart, nothing spills; its PTX."""
    assert "hsaco" in compiled(kernel, constants, pointers, AMD).asm
    made = compiled(kernel, constants, pointers, NVIDIA)
    code = made.asm["ptx"]
    assert "cubin" in made.asm
    assert "fma.rn" not in code
    assert "ld.local" not in code
    return code


@pytest.mark.slow("a kernel is compiled for each", spares=4)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("stored", ["bf16", "fp16", "fp32"])
def test_the_rotation_compiles_to_wide_loads(interleaved, in_place, stored):
    from posenc.kernels.rotary.triton import rotary_kernel

    constants = ROTARY | {"INTERLEAVED": interleaved, "IN_PLACE": in_place}
    code = check(rotary_kernel, constants, NUMBERS | dict.fromkeys(HEADS, f"*{stored}"))
    assert "ld.global.v4.b32" in code
    if not interleaved:
        assert "bar.sync" not in code  # pairs meet in registers
    if stored == "bf16":
        assert "cvt.rn.bf16" in code


@pytest.mark.slow("a kernel is compiled for each", spares=3)
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("stored", ["bf16", "fp32", "fp64"])
def test_the_sum_compiles(drops, stored):
    from triton import language as tl

    from posenc.kernels.addition.triton import add_kernel

    wide = "fp64" if stored == "fp64" else "fp32"
    pointers = {"x": f"*{stored}", "out": f"*{stored}", "table": f"*{wide}"}
    pointers |= {"ids": "*i64", "positions": "*i64"}
    constants = ADDITION | {"DROPS": drops, "WIDE": getattr(tl, f"float{wide[2:]}")}
    code = check(add_kernel, constants, pointers)
    assert ("mul.hi.u32" in code) == drops
    if stored == "bf16":
        assert "cvt.rn.bf16" in code


@pytest.mark.parametrize(
    "stored",
    ["bf16", *(pytest.param(d, marks=pytest.mark.slow("two seconds")) for d in ("fp16", "fp32"))],
)
def test_the_table_compiles_with_its_constants_whole(stored):
    from triton import language as tl

    from posenc.kernels.sincos.triton import sincos_kernel

    formats = {"bf16": tl.bfloat16, "fp16": tl.float16, "fp32": tl.float32}
    pointers = dict.fromkeys(("cos", "sin"), f"*{stored}")
    pointers |= dict.fromkeys(("positions", "words"), "*i64")
    code = check(sincos_kernel, SINCOS | {"STORED": formats[stored]}, pointers)
    written = {bytes.fromhex(number) for number in re.findall(r"0[dD](\w{16})", code)}
    numbers = {abs(struct.unpack(">d", number)[0]) for number in written}
    assert {1 / 6, 1 / 5040, 2.4492935982947064e-16, 6.283185307179586 * 2.0**-64} <= numbers
