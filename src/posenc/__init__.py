"""Positional encodings for transformers: one small contract, exact at any position.

The public names stand in ``__init__.pyi``; each is loaded when it is first used, so that the
command line answers before torch is there.
"""

import lazy_loader

__version__ = "0.3.0"

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__:
        return _loaded(name)
    from posenc._names import unknown  # only where somebody errs

    raise unknown(name, __all__)
