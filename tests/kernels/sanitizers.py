"""The C sources built with sanitizers, each family with the driver of its name."""

import shutil
import subprocess
from pathlib import Path

import torch

import posenc

SOURCES = Path(posenc.__file__).parent / "kernels/csrc"
DRIVERS = sorted((Path(__file__).parent / "sanitized").glob("*.c"))
COMPILER = shutil.which("cc")
AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi2"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd"]


def built(driver: Path, sanitizers: str, folder: Path) -> Path:
    """The program of one driver, in ``folder``."""
    capability = torch.backends.cpu.get_cpu_capability()
    flags = {"AVX2": AVX2, "AVX512": AVX512}.get(capability, [])
    program = folder / f"{driver.stem}-{sanitizers.replace(',', '-')}"
    options = ["-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    sources = [f"-I{SOURCES}", driver, SOURCES / "parallel.c", "-lm", "-lpthread", "-o", program]
    made = subprocess.run([COMPILER, *options, *flags, *sources], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return program


def check(program: Path, *words: str) -> None:
    """Run ``program`` with its seed and number of cases, if they are given."""
    ran = subprocess.run([program, *words], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "clean\n"), ran.stdout + ran.stderr
