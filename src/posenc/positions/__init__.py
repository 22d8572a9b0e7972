"""Positions: one int64 tensor, ``[*batch, seq]``, however the tokens are laid out.

Every encoding takes explicit positions, so a token gets the same encoding in a plain batch, behind
left padding, in a packed row, from a cache, or on one rank of many. Each function here lays tokens
out in one manner.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
