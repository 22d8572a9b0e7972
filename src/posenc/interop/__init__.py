"""Doors to what you already have: Hugging Face's models and ``torch.nn``'s encoder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["exports", "huggingface", "serving", "torch"]
)
