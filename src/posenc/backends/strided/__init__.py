"""Attention with biases of distance, whose matrix is a vector seen with strides."""

from posenc.backends.strided.backend import strided

__all__ = ["strided"]
