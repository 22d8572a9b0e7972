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

FILES = {
    "models": ("inspect", "convert", "export", "check", "parity"),
    "running": ("encode", "walk", "lab", "explore", "info"),
    "showing": ("table", "explain", "heatmap", "curves", "shift", "distance", "binary", "compare"),
}
"""Where they stand; a command that is not listed has a file of its own name."""


def command_named(name: str) -> type:
    """The dataclass of a command."""
    file = next((file for file, names in FILES.items() if name in names), name)
    return getattr(import_module(f"posenc.cli.commands.{file}"), name.capitalize())
