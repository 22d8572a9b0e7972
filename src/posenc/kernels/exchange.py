"""How C reads tensors: DLPack's exchange of C functions, with which torch serves ``tensors.h``."""

import ctypes

from torch import Tensor

MAJOR = 1
"""The version of the protocol that ``tensors.h`` knows."""


class Exchange(ctypes.Structure):
    """``struct exchange`` of tensors.h: addresses of functions."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("read", "release_lock", "take_lock")]


class _Functions(ctypes.Structure):
    """``DLPackExchangeAPI``."""


_Functions._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("older", ctypes.POINTER(_Functions)),
    ("allocate", ctypes.c_void_p),
    ("managed_from_object", ctypes.c_void_p),
    ("object_from_managed", ctypes.c_void_p),
    ("tensor_from_object", ctypes.c_void_p),
    ("current_stream", ctypes.c_void_p),
]


def exchange() -> Exchange | None:
    """torch's functions, and those of Python's lock; ``None`` if this torch has another version.

    Example:
        >>> found = exchange()
        >>> found is None or found.read != 0
        True
    """
    capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    try:
        found = pointer(capsule, b"dlpack_exchange_api")
    except ValueError:
        return None  # a capsule of another name, as of an earlier draft
    functions = ctypes.cast(found, ctypes.POINTER(_Functions))
    while functions and functions.contents.major != MAJOR:
        functions = functions.contents.older
    if not functions or not functions.contents.tensor_from_object:
        return None
    lock = ctypes.pythonapi.PyEval_SaveThread, ctypes.pythonapi.PyEval_RestoreThread
    return Exchange(
        functions.contents.tensor_from_object,
        *[ctypes.cast(function, ctypes.c_void_p).value for function in lock],
    )
