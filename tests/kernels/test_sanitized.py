"""The C sources under AddressSanitizer and UBSan, and once more under ThreadSanitizer.

A family of kernels is driven by the file of its name in ``sanitized/``.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import posenc
from posenc.kernels.library import library

SOURCES = Path(posenc.__file__).parent / "kernels/csrc"
DRIVERS = sorted((Path(__file__).parent / "sanitized").glob("*.c"))
COMPILER = shutil.which("cc")
AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi2"]


def test_every_family_has_a_driver():
    families = {path.stem for path in SOURCES.glob("*.c")} - {"parallel"}
    assert families == {path.stem for path in DRIVERS}


@pytest.mark.slow("C sources compiled and run with sanitizers")
@pytest.mark.skipif(COMPILER is None or library() is None, reason="there is no C compiler")
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda path: path.stem)
def test_no_byte_too_far_no_overflow_and_no_race(tmp_path, driver, sanitizers):
    flags = AVX2 if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512") else []
    program = tmp_path / driver.stem
    options = ["-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    sources = [f"-I{SOURCES}", driver, SOURCES / "parallel.c", "-lm", "-lpthread", "-o", program]
    built = subprocess.run([COMPILER, *options, *flags, *sources], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "clean\n"), ran.stdout + ran.stderr
