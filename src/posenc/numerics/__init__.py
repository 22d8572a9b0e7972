"""Integers and tensors in, tensors out: positions, frequencies, phases, waves, slopes."""

from posenc.numerics import positions

__all__ = ["positions"]
