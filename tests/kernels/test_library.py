"""The library: one pool of threads, the version that fits the processor, and life without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from posenc.kernels import library as of

RUNTIMES = """
import re, torch
torch.set_num_threads(2)
from posenc import Rotary
from posenc.kernels.library import library
before = {line.split()[-1] for line in open("/proc/self/maps") if re.search(r"lib[gi]?omp", line)}
rotary = Rotary(128)
rotary(torch.randn(1, 8, 2048, 128), torch.randn(1, 8, 2048, 128))
after = {line.split()[-1] for line in open("/proc/self/maps") if re.search(r"lib[gi]?omp", line)}
print(library() is not None, len(after), before == after)
"""

DIGEST = """
import hashlib, torch
from posenc import Rotary, Sinusoidal
torch.manual_seed(0)
digest = hashlib.sha256()
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
    for pairing in ("half", "interleaved"):
        rotary = Rotary(52, pairing=pairing, head_dim=57)
        q = torch.randn(2, 3, 37, 57, dtype=torch.float64).to(dtype)
        for made in rotary(q, q[:, :1]):
            digest.update(made.to(torch.float64).numpy().tobytes())
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    table = Sinusoidal(130).table(torch.arange(5000) + 2**40, dtype=dtype)
    digest.update(table.to(torch.float64).numpy().tobytes())
print(digest.hexdigest())
"""

native = pytest.mark.skipif(of.library() is None, reason="no native library was built")


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.slow("a process of its own")
@native
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_there_is_one_openmp_runtime_and_it_is_torchs():
    ran = python(RUNTIMES)
    assert ran.stdout.split() == ["True", "1", "True"], ran.stderr


@native
def test_torchs_threads_are_found():
    assert of._parallel_of_torch()[0]


@pytest.mark.slow("every kernel once for each kind of processor")
@native
def test_every_processor_gives_the_same_bits_and_so_does_pure_torch():
    found = torch.backends.cpu.get_cpu_capability().lower()
    names = ["default", "avx2", "avx512"]
    names = names[: names.index(found) + 1] if found in names else ["default"]
    digests = {name: python(DIGEST, ATEN_CPU_CAPABILITY=name).stdout for name in names}
    digests["pure torch"] = python(DIGEST, POSENC_NO_NATIVE="1", POSENC_REQUIRE_NATIVE="").stdout
    digests["one thread"] = python(DIGEST, OMP_NUM_THREADS="1").stdout
    assert len(set(digests.values())) == 1, digests
    assert len(digests["pure torch"]) == 65


@native
def test_the_library_that_fits_is_chosen(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "NEON")
    assert of._for_this_processor().name == "kernels_default.so"


@pytest.fixture
def nothing_built(monkeypatch, tmp_path):
    monkeypatch.setattr(of, "BUILT", tmp_path / "csrc" / "built")
    monkeypatch.delenv("POSENC_REQUIRE_NATIVE", raising=False)
    monkeypatch.delenv("POSENC_NO_NATIVE", raising=False)
    of.library.cache_clear()
    yield
    of.library.cache_clear()


def test_without_a_library_pure_torch_runs(nothing_built):
    assert of.library() is None
    assert of.described().startswith("pure torch: no compiled library; reinstall where")


def test_a_library_that_is_required_and_missing_is_an_error(nothing_built, monkeypatch):
    monkeypatch.setenv("POSENC_REQUIRE_NATIVE", "1")
    with pytest.raises(
        ImportError, match=r"no native kernels could be loaded.*C compiler, or unset"
    ):
        of.library()


@native
def test_a_library_of_other_sources_is_not_used(nothing_built, tmp_path):
    """As after a pull without a new build: its idea of memory may not be ours."""
    made = Path(of.__file__).parent / "csrc" / "built" / "kernels_default.so"
    of.BUILT.mkdir(parents=True)
    (of.BUILT / made.name).write_bytes(made.read_bytes())
    (of.BUILT.parent / "other.c").write_text("int other;\n")
    assert of.library() is None
    assert "was built from other sources; install posenc again" in of.described()


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("POSENC_NO_NATIVE", "1")
    assert of.described() == "pure torch: POSENC_NO_NATIVE is set"
