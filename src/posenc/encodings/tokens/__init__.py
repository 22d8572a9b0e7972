"""Place one: encodings that are added to, or mixed into, the token embeddings.

Each is loaded when it is first used: the conventions of the sinusoidal one need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
