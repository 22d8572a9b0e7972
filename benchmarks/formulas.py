"""The peers: what people write today, at its usual places of rounding."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def float32_formula(length: int, dim: int) -> Tensor:
    """The vectorized table of the PyTorch tutorial."""
    position = torch.arange(length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


def float64_formula(length: int, dim: int) -> Tensor:
    """The same in float64, rounded at the end: right on average up to positions near a million."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    exponent = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = position * 10000.0**-exponent
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(angles)
    pe[:, 1::2] = torch.cos(angles)
    return pe


def nested_loop(length: int, dim: int) -> Tensor:
    """Position by position and pair by pair, as it is taught."""
    pe = torch.zeros(length, dim)
    for k in range(length):
        for i in range(dim // 2):
            divisor = 10000.0 ** (2 * i / dim)
            pe[k, 2 * i] = math.sin(k / divisor)
            pe[k, 2 * i + 1] = math.cos(k / divisor)
    return pe


class TutorialModule(nn.Module):
    """A buffer of a longest length, added and dropped from."""

    def __init__(self, dim: int, dropout: float, max_len: int = 5000):
        super().__init__()
        self.scale = math.sqrt(dim)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", float32_formula(max_len, dim).unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.scale + self.pe[:, : x.shape[1]].to(x.dtype)
        return self.dropout(x)


def half_formula(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """What transformers computes for Llama: two halves, exchanged and joined."""

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return turned(q), turned(k)


def of_transformers() -> Callable[..., tuple[Tensor, Tensor]] | None:
    """The function itself, where transformers is installed."""
    try:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
    except ImportError:
        return None
    return apply_rotary_pos_emb
