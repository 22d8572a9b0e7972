"""Place three: encodings that change the attention scores before softmax."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
