"""``posenc info`` and ``explore``: what is here, and the page on which it can be touched."""

import platform
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from posenc.cli.files import check, placed
from posenc.cli.printing import print_json

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


def info(asked: Any) -> None:
    from posenc.kernels.library import described

    facts = {
        "posenc": metadata.version("posenc"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": metadata.version("torch"),
        "kernels": described(),
    }
    parts = {name: _version(name) for name in OPTIONAL}
    if asked.format == "json":
        return print_json(facts, optional=parts)
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


def explore(asked: Any) -> None:
    if asked.output is not None:
        from posenc.explorer import page

        check(asked.output, ".html", ".htm")
        content = page().encode()
        with placed(asked.output) as file:
            file.write(content)
        print(f"wrote {asked.output} ({len(content) / 1000:.0f} kB); open it in a browser")
    else:
        from posenc.explorer.serving import serve

        serve(asked.port, browser=not asked.no_browser)
