"""The C sources under AddressSanitizer and UBSan, and once more under ThreadSanitizer."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import posenc

SOURCES = Path(posenc.__file__).parent / "kernels/csrc"
COMPILER = shutil.which("cc")
AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi2"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd"]


def built(sanitizers: str, folder: Path) -> Path:
    """The program of ``sanitized.c``, which holds ``operators.c``, in a folder."""
    capability = torch.backends.cpu.get_cpu_capability()
    flags = {"AVX2": AVX2, "AVX512": AVX512}.get(capability, [])
    program = folder / f"operators-{sanitizers.replace(',', '-')}"
    options = ["-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    others = [path for path in SOURCES.glob("*.c") if path.name != "operators.c"]
    sources = [f"-I{SOURCES}", Path(__file__).with_name("sanitized.c"), *others]
    command = [COMPILER, *options, *flags, *sources, "-lm", "-lpthread", "-ldl", "-o", program]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return program


def check(program: Path, *words: str) -> None:
    """Run ``program`` with its seed and number of cases, if they are given."""
    ran = subprocess.run([program, *words], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "clean\n"), ran.stdout + ran.stderr


@pytest.mark.slow("C sources compiled and run with sanitizers")
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_no_byte_too_far_no_overflow_and_no_race(tmp_path, sanitizers):
    check(built(sanitizers, tmp_path))
