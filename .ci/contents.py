"""What the packages carry: python .ci/contents.py NATIVE.whl PURE.whl SDIST.tar.gz"""

import sys
import tarfile
import zipfile

native, pure, sources = sys.argv[1:]
IN_A_WHEEL = [
    "posenc/__init__.pyi",
    "posenc/py.typed",
    "posenc/explorer/page/index.html",
    "posenc/explorer/page/main.js",
    "posenc/explorer/page/style/base.css",
]
IN_AN_SDIST = [
    "src/posenc/__init__.py",
    "src/posenc/kernels/csrc/CMakeLists.txt",
    "tests/conftest.py",
    "tests/contracts/test_tokens.py",
    "benchmarks/__main__.py",
    "docs/architecture.md",
    "conftest.py",
    "constraints.txt",
    "README.md",
    "LICENSE",
]


def libraries(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("posenc/kernels/csrc/built/kernels_")]


def wheel(path: str) -> list[str]:
    names = zipfile.ZipFile(path).namelist()
    missing = [name for name in IN_A_WHEEL if name not in names]
    assert not missing, f"{path} lacks {missing}"
    strays = [name for name in names if name.endswith((".o", ".ninja")) or "CMakeFiles" in name]
    assert not strays, f"{path} carries {strays}"
    return names


assert libraries(wheel(native)), f"{native} carries no kernels"
assert not libraries(wheel(pure)), f"{pure} carries kernels"

with tarfile.open(sources) as archive:
    names = [name.partition("/")[2] for name in archive.getnames()]
missing = [name for name in IN_AN_SDIST if name not in names]
assert not missing, f"{sources} lacks {missing}"
built = [name for name in names if name.endswith((".so", ".o", ".pyc")) or ".venv/" in name]
assert not built, f"{sources} carries {built}"
print(f"contents are whole: {len(names)} files in the sdist")
