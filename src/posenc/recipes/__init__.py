"""The positional encodings of well-known models, each an ordinary composition.

Example:
    >>> from posenc import recipes
    >>> recipes.llama3(factor=8.0).queries_keys[0].frequencies.factor
    8.0
    >>> recipes.t5(8, decoder=True).scores[0]
    T5Bias(heads=8, bidirectional=False)
    >>> [layer.queries_keys[0].frequencies.base for layer in recipes.modernbert()[:4]]
    [160000.0, 10000.0, 10000.0, 160000.0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
