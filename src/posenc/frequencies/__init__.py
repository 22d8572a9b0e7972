"""Frequency schedules: frozen, exact, nested by value.

Each is loaded when it is first used: numbers that need no tensors, as ``Powers``, ask for no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
