"""Place two: encodings of queries and keys inside attention."""

from posenc.encodings.queries_keys.rotary import Rotary

__all__ = ["Rotary"]
