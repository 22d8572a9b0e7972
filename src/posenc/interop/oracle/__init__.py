"""What a model of transformers does with positions, measured on the model itself."""

from posenc.interop.oracle.building import asked, built, classes_of, shrunk
from posenc.interop.oracle.rotation import Rotation
from posenc.interop.oracle.watching import inputs_of, watched, watching

__all__ = [
    "Rotation", "asked", "built", "classes_of", "inputs_of", "shrunk", "watched", "watching",
]  # fmt: skip
