"""Caches of transformers' models: their keys moved to other positions, or to other frequencies."""

from posenc.interop.caches.moving import move_cached_keys, rerotate_cached_keys
from posenc.interop.caches.storage import KeyStorage, key_storage

__all__ = ["KeyStorage", "key_storage", "move_cached_keys", "rerotate_cached_keys"]
