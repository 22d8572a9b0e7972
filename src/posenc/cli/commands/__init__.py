"""The commands: what each takes, as frozen dataclasses of its options. ``posenc.cli.work`` does it.

These files import what is light, so that help and mistakes answer without torch.
"""

from importlib import import_module

COMMANDS = {
    "encode": "Encode text: tokens, ids, embeddings, with positions added.",
    "table": "Print the table of an encoding, one row a position.",
    "explain": "Explain one number of the table, step by step.",
    "walk": "Walk a sentence through a transformer encoder, every number shown.",
    "heatmap": "Draw the table as a heatmap, in a file or in the terminal.",
    "curves": "Draw columns of the table as curves over the position.",
    "binary": "Print binary numbers beside sines: both count fast and slow.",
    "shift": "Print the map that moves an encoding by an offset, and its error.",
    "distance": "Print how an encoding scores each distance, query - key.",
    "compare": "Compare the sinusoidal conventions by their properties.",
    "inspect": "Describe the positions in a config.json, or compare two files.",
    "convert": "Convert a checkpoint to the other pairing of rotated channels.",
    "export": "Export the positions in a config.json to another program.",
    "check": "Identify an implementation, and find its known faults.",
    "parity": "Compare two rotary implementations bit by bit.",
    "lab": "Compare encodings by training small models.",
    "explore": "Open the explorer in a browser, or write it as one file.",
    "info": "Print versions, compiled kernels and optional parts.",
}
"""In the order of the help, which says these words of each; its docstring says what follows."""

MODELS = ("inspect", "convert", "export", "check", "parity", "lab")
SHOWING = ("encode", "walk", "table", "explain", "heatmap", "curves", "shift", "distance", "binary",
           "compare", "explore", "info")  # fmt: skip


def command_named(name: str) -> type:
    """The dataclass of a command, which has a file of its name if it stands in neither."""
    file = "models" if name in MODELS else "showing" if name in SHOWING else name
    return getattr(import_module(f"posenc.cli.commands.{file}"), name.capitalize())
