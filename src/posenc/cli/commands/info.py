"""``posenc info``: what is here."""

import platform
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from posenc.cli import options

OPTIONAL = {
    "numpy": "npz files, figures",
    "matplotlib": "figures (heatmap, curves)",
    "tokenizers": "text to tokens (encode, walk)",
    "safetensors": "reading embeddings from .safetensors",
    "onnxscript": "ONNX programs (export)",
    "rich": "tables and progress in the terminal",
    "tyro": "options and help of commands",
    "transformers": "Hugging Face models",
    "triton": "kernels on accelerators",
}


@dataclass(frozen=True)
class Info:
    """The optional parts are not imported."""

    format: options.TextOrJson = "text"

    def run(self) -> None:
        """Prints the list, without importing any of the parts."""
        from posenc.cli import formats
        from posenc.kernels.library import described

        facts: dict[str, Any] = {
            "posenc": metadata.version("posenc"),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "torch": metadata.version("torch"),
            "kernels": described(),
        }
        parts = {name: _version(name) for name in OPTIONAL}
        if self.format == "json":
            formats.print_json(facts, optional=parts)
            return
        for name, value in facts.items():
            print(f"{name:<13}{value}")
        print("optional parts")
        for name, version in parts.items():
            print(f"  {name:<13}{version or 'missing':<10}{OPTIONAL[name]}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name) if find_spec(name) else None
    except metadata.PackageNotFoundError:  # some builds of torch bring Triton by another name
        return "unknown"
