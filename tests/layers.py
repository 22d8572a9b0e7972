"""Who imports whom, read from the sources; names taken through the face of a package included."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One name that a module takes: `from source import name`, or `import source`."""

    source: str
    name: str | None = None


class Tree:
    """A package on disk, whose top folders and files are its layers, lowest first.

    What stands above all layers is the package's own `__init__`, its face: a name taken from
    there counts as taken from where it is defined.
    """

    def __init__(self, root: Path, layers: list[str]):
        self.root, self.layers, self.package = root, layers, root.name
        face = root / "__init__.pyi"
        faces = imports(face, f"{self.package}.__init__") if face.exists() else []
        self.face = {each.name: each.source for each in faces}

    def modules(self) -> list[Path]:
        """Every module but the face; stubs are among them, since lazy packages import by them."""
        inside = [*self.root.rglob("*.py"), *self.root.rglob("*.pyi")]
        return sorted(
            path for path in inside if path.parent != self.root or path.stem != "__init__"
        )

    def layer(self, path: Path) -> str:
        return path.relative_to(self.root).parts[0].partition(".")[0]

    def module(self, path: Path) -> str:
        """The dotted name of a file; that of a package ends in `.__init__`."""
        return ".".join((self.package, *path.relative_to(self.root).with_suffix("").parts))

    def layer_of(self, taken: Import) -> str | None:
        """The layer that an import reaches; the package itself where it takes the face whole."""
        top, *inside = taken.source.split(".")
        if top != self.package:
            return None
        if inside:
            return inside[0]
        if taken.name in self.layers:
            return taken.name
        if taken.name == "__version__":
            return None
        defined = self.face.get(taken.name, self.package)
        return self.package if defined == self.package else defined.split(".")[1]

    def faults(self) -> Iterator[str]:
        """What the layers forbid, a sentence each."""
        for path in self.modules():
            own, name = self.layer(path), path.relative_to(self.root)
            if own not in self.layers:
                yield f"{name} stands in no layer"
                continue
            if path.suffix == ".py" and any(_relative(path)):
                yield f"{name} imports relatively"
            for taken in imports(path, self.module(path)):
                layer = self.layer_of(taken)
                if layer == self.package and own != self.layers[-1]:
                    yield f"{name} imports the whole package"
                elif layer in self.layers and self.layers.index(layer) > self.layers.index(own):
                    yield f"{name} imports {layer}"


def imports(path: Path, module: str) -> list[Import]:
    """What a file imports, wherever in it, by statement or by name in `import_module`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            source = _absolute(node, module)
            found += [Import(source, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [Import(alias.name) for alias in node.names]
        elif isinstance(node, ast.Call):
            found += [Import(name) for name in _by_name(node)]
    return found


def _absolute(node: ast.ImportFrom, module: str) -> str:
    """`from ..b import c` in a.x.y is `from a.b import c`."""
    if not node.level:
        return node.module or ""
    package = module.split(".")[: -node.level]
    return ".".join(package + ([node.module] if node.module else []))


def _by_name(call: ast.Call) -> list[str]:
    """The modules that a call of `import_module` or `__import__` names."""
    function = call.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if called not in ("import_module", "__import__"):
        return []
    return [each.value for each in call.args
            if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip


def _relative(path: Path) -> list[ast.ImportFrom]:
    tree = ast.walk(ast.parse(path.read_text()))
    return [node for node in tree if isinstance(node, ast.ImportFrom) and node.level]
