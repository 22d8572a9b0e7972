"""The arithmetic that modules of the zoo share."""

import torch


def powers(dim, base=10_000.0, dtype=torch.float32):
    """Frequencies, as public code computes them."""
    return 1.0 / (base ** (torch.arange(0, dim, 2).to(dtype) / dim))


def waves(positions, dim, base=10_000.0):
    """Cosines and sines [*positions, dim / 2] in float32."""
    angles = positions[..., None].float() * powers(dim, base)
    return angles.cos(), angles.sin()


def halves(x, cos, sin):
    """The first half of the channels, turned with the second."""
    cos, sin, (a, b) = cos.to(x.dtype), sin.to(x.dtype), x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def neighbors(x, cos, sin):
    """Channels side by side, turned."""
    cos, sin, a, b = cos.to(x.dtype), sin.to(x.dtype), x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def interleaved(angles):
    """Sines at even channels, cosines at odd ones."""
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


def sines(length, dim, base=10_000.0, start=0, exponent=lambda i, d: 2 * i / d):
    """The paper's table, of float64."""
    i = torch.arange(dim // 2, dtype=torch.float64)
    positions = torch.arange(start, start + length, dtype=torch.float64)
    return interleaved(positions[:, None] * base ** -exponent(i, dim)).float()


def apart(q_len, k_len):
    """How far each of the last queries stands behind each key."""
    return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)


def of_square(side):
    """Rows and columns of the tokens of a square image."""
    index = torch.arange(side * side)
    return torch.stack((index // side, index % side), -1)
