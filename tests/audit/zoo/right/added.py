"""What public code adds to embeddings, in its usual styles."""

import math

import numpy as np
import torch
from tests.audit.zoo.arithmetic import interleaved, powers
from tests.audit.zoo.specimen import right
from torch import nn


class Tutorial(nn.Module):
    """PyTorch's tutorial: a buffer, dropout, the sequence first."""

    def __init__(self, d_model=64, dropout=0.1, max_len=600):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class Annotated(Tutorial):
    """The annotated transformer: the batch first."""

    def __init__(self, d_model=32, dropout=0.0, max_len=500):
        super().__init__(d_model, dropout, max_len)
        self.pe = self.pe.transpose(0, 1)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)].requires_grad_(False))


class Wide(Annotated):
    """The paper's sum at the width of large models: embeddings times the root of the width."""

    def __init__(self, d_model=1024, max_len=300):
        super().__init__(d_model, 0.1, max_len)
        self.d_model = d_model

    def forward(self, x, attention_mask=None):
        """x: [batch, seq, dim]"""
        if attention_mask is None:
            return super().forward(x * math.sqrt(self.d_model))
        places = (attention_mask.cumsum(1) - 1).clamp(min=0)
        return x * math.sqrt(self.d_model) + self.pe[0, places]


def whisper(length, channels, max_timescale=10000):
    """Whisper's encoder: a table of sines, then cosines, spaced to the last."""
    log_timescale_increment = np.log(max_timescale) / (channels // 2 - 1)
    inv_timescales = torch.exp(-log_timescale_increment * torch.arange(channels // 2))
    scaled_time = torch.arange(length)[:, np.newaxis] * inv_timescales[np.newaxis, :]
    return torch.cat([torch.sin(scaled_time), torch.cos(scaled_time)], dim=1)


def mae_line(embed_dim, pos):
    """MAE's encoding of one axis."""
    omega = 1.0 / 10000 ** (np.arange(embed_dim // 2, dtype=float) / (embed_dim / 2.0))
    out = np.einsum("m,d->md", pos.reshape(-1), omega)
    return np.concatenate([np.sin(out), np.cos(out)], axis=1)


def mae_grid(embed_dim, grid_size):
    """MAE's encoding of an image, in NumPy: width in the first half, height in the second."""
    line = np.arange(grid_size, dtype=np.float32)
    parts = [mae_line(embed_dim // 2, each) for each in np.meshgrid(line, line)]
    return np.concatenate(parts, axis=1)


class Incremental(nn.Module):
    """A learned table with the length of the cache."""

    def __init__(self, embed_dim=32, max_len=96):
        super().__init__()
        self.table = nn.Embedding(max_len, embed_dim)

    def forward(self, x, past_length=0):
        positions = torch.arange(past_length, past_length + x.shape[1], device=x.device)
        return x + self.table(positions)[None]


def timestep(timesteps, dim, max_period=10000):
    """DiT's embedding of diffusion steps: cosines first."""
    args = timesteps[:, None].float() * powers(dim, max_period)
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class Steps(nn.Module):
    """DiT's embedding of diffusion steps: sines, then two layers."""

    def __init__(self, hidden_size=32, frequency_embedding_size=64):
        super().__init__()
        self.size, layers = frequency_embedding_size, (hidden_size, hidden_size)
        self.mlp = nn.Sequential(nn.Linear(self.size, hidden_size), nn.SiLU(), nn.Linear(*layers))

    def forward(self, t):
        return self.mlp(timestep(t, self.size))


class FourierFeatures(nn.Module):
    """Sines of random frequencies, which are kept."""

    def __init__(self, embed_dim=32, scale=16.0):
        super().__init__()
        self.W = nn.Parameter(torch.randn(embed_dim // 2) * scale, requires_grad=False)

    def forward(self, t):
        angles = t[:, None] * self.W[None] * 2 * math.pi
        return torch.cat([angles.sin(), angles.cos()], -1)


class ByPositions(nn.Module):
    """Sines on the fly, at positions of the caller."""

    def forward(self, x, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[-2], device=x.device)
        angles = positions[..., None].float() * powers(x.shape[-1])
        return x + interleaved(angles).to(x.dtype)


class TransformerXL(nn.Module):
    """A table of distances, with an axis for the batch."""

    def __init__(self, demb=32):
        super().__init__()
        self.register_buffer("inv_freq", powers(demb))

    def forward(self, pos_seq):
        sinusoid = torch.outer(pos_seq.float(), self.inv_freq.float())
        return torch.cat([sinusoid.sin(), sinusoid.cos()], dim=-1)[:, None, :]


class OnGrid(nn.Module):
    """A table for channels-last images: half of the channels for each axis."""

    def __init__(self, channels=32):
        super().__init__()
        self.channels = channels

    def line(self, length):
        return interleaved(torch.arange(length).float()[:, None] * powers(self.channels // 2))

    def forward(self, x):
        _, height, width, _ = x.shape
        rows = self.line(height)[:, None].expand(-1, width, -1)
        columns = self.line(width)[None].expand(height, -1, -1)
        return torch.cat((rows, columns), -1).expand(len(x), -1, -1, -1).to(x.dtype)


class PatchesAlone(nn.Module):
    """A class token stands before the patches, or behind them, and receives nothing."""

    def __init__(self, table, last=False, cut=False):
        super().__init__()
        self.pe, self.last, self.cut = nn.Parameter(table, requires_grad=False), last, cut

    def forward(self, x):
        pe = self.pe[: x.shape[1] - 1] if self.cut else self.pe
        if self.last:
            return torch.cat((x[:, :-1] + pe, x[:, -1:]), 1)
        return torch.cat((x[:, :1], x[:, 1:] + pe), 1)


def patches_alone():
    return PatchesAlone(torch.from_numpy(mae_grid(32, 14)).float())


def patches_alone_before_a_class_token():
    return PatchesAlone(torch.from_numpy(mae_grid(32, 14)).float(), last=True, cut=True)


class RowsAndColumns(nn.Module):
    """A learned table of rows and one of columns, of a small grid."""

    def __init__(self, dim=32, side=4):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(side, 1, dim))
        self.columns = nn.Parameter(torch.randn(1, side, dim))

    def forward(self, x):
        return x + (self.rows + self.columns).flatten(0, 1)


RIGHT = [
    right(Tutorial, "convention paper, base 10,000"),
    right(Annotated, "convention paper, base 10,000"),
    right(whisper, "convention tensor2tensor"),
    right(mae_line, "convention concatenated", kind="added"),
    right(mae_grid, "a grid encoding"),
    right(Incremental, "a learned table"),
    right(timestep, "convention timestep"),
    right(ByPositions, "convention paper"),
    right(TransformerXL, "convention concatenated", "cast-breaks-it"),
    right(OnGrid, "height in the first half of the channels, width in the second", layout="bhwd"),
    right(patches_alone, "14 × 14 patches behind 1 of zeros, equal to posenc.AxialSinusoidal(32,"),
    right(patches_alone_before_a_class_token, "14 × 14 patches before 1 of zeros, equal to"),
    right(Wide, "convention paper"),
    right(Steps, ""),
    right(FourierFeatures, ""),
    right(RowsAndColumns, "a learned table, at least 16 rows"),
]
