"""The layers: each imports only from those before it, and the core loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import posenc

ROOT = Path(posenc.__file__).parent
LAYERS = [
    "_guards",
    "positions",
    "frequencies",
    "numerics",
    "kernels",
    "encodings",
    "backends",
    "transformer",
    "recipes",
    "interop",
    "inspection",
    "plots",
    "testing",
    "audit",
    "explorer",
    "cli",
]
HEAVY = ["matplotlib", "transformers", "tokenizers", "rich", "tyro", "triton", "http.server"]


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    """The layers of posenc that a module imports, wherever in the file it does."""
    layers = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} imports relatively"
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        layers |= {name.split(".")[1] for name in names if name.startswith("posenc.")}
    return layers & set(LAYERS)


def test_every_module_stands_in_a_layer():
    assert {layer_of(path) for path in modules()} <= set(LAYERS)
    assert len(modules()) > 20  # the walk found them


def test_layers_import_only_from_those_before_them():
    wrong = [
        f"{path.relative_to(ROOT)} imports {layer}"
        for path in modules()
        for layer in imported_layers(path)
        if LAYERS.index(layer) > LAYERS.index(layer_of(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_loads_nothing_heavy():
    code = f"import posenc, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_help_does_not_load_torch():
    code = (
        "import sys\nfrom posenc.cli.command_line import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip().endswith("False")


def test_files_stay_short():
    long = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in modules()}
    assert not {name: lines for name, lines in long.items() if lines > 300}
