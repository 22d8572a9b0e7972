"""What public code does to queries and keys, in its usual styles."""

import math
from contextlib import nullcontext

import torch
from tests.audit.zoo.arithmetic import halves, neighbors, powers, waves
from tests.audit.zoo.right import complex_numbers, lazy_tables
from tests.audit.zoo.specimen import right
from torch import nn


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class OfIds(nn.Module):
    """transformers' style: cosines and sines, applied by the function beside the module."""

    mscale = 1.0

    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq.float()
        emb = torch.cat((freqs, freqs), dim=-1)
        return (emb.cos() * self.mscale).to(x.dtype), (emb.sin() * self.mscale).to(x.dtype)


class LlamaRotary(OfIds):
    """transformers' Llama, whose frequencies are a buffer."""

    def __init__(self, dim=32, base=10000.0, max_position_embeddings=2048):
        super().__init__()
        self.max_position_embeddings = max_position_embeddings
        self.register_buffer("inv_freq", powers(dim, base), persistent=False)


class YaRN(OfIds):
    """YaRN by 4 from 2,048, with its attention factor."""

    def __init__(self, dim=64, base=10000.0, factor=4.0, trained=2048):
        super().__init__()
        self.max_position_embeddings = int(factor * trained)
        low = math.floor(dim * math.log(trained / (32 * 2 * math.pi)) / (2 * math.log(base)))
        high = math.ceil(dim * math.log(trained / (1 * 2 * math.pi)) / (2 * math.log(base)))
        ramp = ((torch.arange(dim // 2).float() - low) / (high - low)).clamp(0, 1)
        self.inv_freq = powers(dim, base) * (ramp / factor + 1 - ramp)
        self.mscale = 0.1 * math.log(factor) + 1.0


class LeftToTheScale(YaRN):
    """YaRN as DeepSeek-V3's own code has it: its factor goes into the scale of scores."""

    def __init__(self):
        super().__init__()
        self.mscale = 1.0


class Permuting(YaRN):
    """YaRN as DeepSeek-V2 has it: neighbors come out as halves."""

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        apart = [x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) for x in (q, k)]
        return apply_rotary_pos_emb(*apart, *super().forward(q, position_ids))


class Torchtune(nn.Module):
    """torchtune: [batch, seq, heads, head_dim], positions by keyword, pairs side by side."""

    def __init__(self, dim=32, max_seq_len=512, base=10_000):
        super().__init__()
        cache = torch.stack(waves(torch.arange(max_seq_len), dim, base), dim=-1)
        self.register_buffer("cache", cache, persistent=False)

    def forward(self, x, *, input_pos=None):
        cache = self.cache[: x.size(1)] if input_pos is None else self.cache[input_pos]
        cos, sin = cache.view(-1, x.size(1), 1, x.size(3) // 2, 2).unbind(-1)
        a, b = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(3).type_as(x)


class VLLM(nn.Module):
    """vLLM: positions first, flattened heads, cosines and sines in one cache."""

    def __init__(self, head_size=32, max_position=512, base=10000.0):
        super().__init__()
        self.head_size = head_size
        cache = torch.cat(waves(torch.arange(max_position), head_size, base), dim=-1)
        self.register_buffer("cos_sin_cache", cache, persistent=False)

    def turn(self, x, cos, sin):
        heads = x.view(x.shape[0], -1, self.head_size)
        return halves(heads, cos[:, None], sin[:, None]).reshape(x.shape)

    def forward(self, positions, query, key):
        cos, sin = self.cos_sin_cache.index_select(0, positions.flatten()).chunk(2, dim=-1)
        return self.turn(query, cos, sin), self.turn(key, cos, sin)


class GPTJ(nn.Module):
    """GPT-J: neighbors in pairs, an offset."""

    def __init__(self, head_dim=32):
        super().__init__()
        self.head_dim = head_dim

    def forward(self, x, offset=0):
        positions = torch.arange(offset, offset + x.shape[2])
        return neighbors(x, *waves(positions, self.head_dim))


class Both(nn.Module):
    """Queries and keys by positions, which the others turn."""

    head_dim = 64

    def forward(self, q, k, positions):
        return self.turn(q, positions), self.turn(k, positions)


class Llama3(Both):
    """Llama 3.1's rescaling by 8."""

    def __init__(self):
        super().__init__()
        freqs = powers(self.head_dim, 500_000.0)
        smooth = ((8192 * freqs / (2 * math.pi) - 1) / (4 - 1)).clamp(0, 1)
        self.freqs = (1 - smooth) * freqs / 8 + smooth * freqs

    def turn(self, x, positions):
        angles = positions[:, None, :, None].float() * self.freqs
        return halves(x, angles.cos(), angles.sin())


class NeoX(Both):
    """GPT-NeoX: the first quarter of the head."""

    def turn(self, x, positions):
        turned, kept = x.split((16, 48), dim=-1)
        return torch.cat((halves(turned, *waves(positions[:, None], 16)), kept), dim=-1)


class DeepSeek(Both):
    """The last 32 of 48 channels, pairs side by side."""

    head_dim = 48

    def turn(self, x, positions):
        kept, turned = x.split((16, 32), dim=-1)
        return torch.cat((kept, neighbors(turned, *waves(positions[:, None], 32))), dim=-1)


class Proportional(nn.Module):
    """A quarter of the pairs turn, at the speeds of the whole width."""

    def __init__(self, head_dim=64, share=0.25):
        super().__init__()
        self.inv = powers(head_dim)
        self.inv[int(share * head_dim // 2) :] = 0

    def forward(self, x, positions):
        angles = positions[:, None, :, None].float() * self.inv
        return halves(x, angles.cos(), angles.sin())


class Megatron(nn.Module):
    """[seq, batch, heads, head_dim], all rows from 0 on."""

    def __init__(self, dim=32):
        super().__init__()
        self.waves = torch.stack(waves(torch.arange(512), dim))[:, :, None, None]

    def forward(self, t):
        return halves(t, *self.waves[:, : t.shape[0]])


class Together(nn.Module):
    """Queries and keys [batch, seq, heads, head_dim], from 0 on."""

    def __init__(self, head_dim=32):
        super().__init__()
        self.register_buffer("waves", torch.stack(waves(torch.arange(256), head_dim)))

    def turn(self, x):
        return halves(x, *self.waves[:, : x.shape[1], None])

    def forward(self, q, k):
        return self.turn(q), self.turn(k)


def flash(x, cos, sin):
    """flash-attention's reference: [batch, seq, heads, head_dim] and cosines of half the width."""
    cos = torch.cat((cos, cos), -1)[:, None]
    sin = torch.cat((sin, sin), -1)[:, None]
    return x * cos + rotate_half(x) * sin


class Cached(nn.Module):
    """Queries and keys with the length of the cache."""

    def __init__(self, head_dim=32):
        super().__init__()
        self.inv = 1.0 / (10000 ** (torch.arange(0, head_dim, 2).float() / head_dim))

    def turn(self, x, start):
        angles = torch.arange(start, start + x.shape[2]).float()[:, None] * self.inv
        return halves(x, angles.cos(), angles.sin())

    def forward(self, q, k, start_pos=0):
        return self.turn(q, start_pos), self.turn(k, start_pos)


class RoFormer(nn.Module):
    """One head, [batch, seq, dim], pairs side by side."""

    def __init__(self, dim=32, max_seq_len=256):
        super().__init__()
        self.register_buffer("waves", torch.stack(waves(torch.arange(max_seq_len), dim)))

    def forward(self, x):
        return neighbors(x, *self.waves[:, : x.shape[1]])


class OneTensor(nn.Module):
    """Queries or keys alone, named x; halves by slices take positions for them, too."""

    def __init__(self, dim=32):
        super().__init__()
        self.register_buffer("inv", powers(dim), persistent=False)

    def angles(self, seq):
        angles = torch.outer(torch.arange(seq, dtype=torch.float32), self.inv.float())
        return torch.cat((angles, angles), -1)

    def turned(self, x, angles):
        return x * angles.cos().to(x.dtype) + rotate_half(x) * angles.sin().to(x.dtype)

    def forward(self, x):
        return self.turned(x, self.angles(x.shape[-2]))


class OneTensorOfHeadsLast(OneTensor):
    def forward(self, x):
        return self.turned(x, self.angles(x.shape[1])[:, None])


class FromTwo(OneTensor):
    """Positions begin at 2, which no score tells."""

    def angles(self, seq):
        return super().angles(seq + 2)[2:]


class OutsideOfAutocast(nn.Module):
    """transformers': a product of matrices, with autocast switched off around it."""

    dim, within = 32, False

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        rates = powers(self.dim)[None, :, None].expand(len(position_ids), -1, 1)
        off = torch.autocast(q.device.type, enabled=False)
        with nullcontext() if self.within else off:
            angles = (rates @ position_ids[:, None].float()).mT[:, None]
        return tuple(halves(x, angles.cos(), angles.sin()) for x in (q, k))


class TableBeforeAutocast:
    """A table by a product of matrices, which is made when it is built."""

    def __init__(self, dim=64, max_len=2048):
        angles = (torch.arange(max_len).float()[:, None] @ powers(dim)[None]).repeat(1, 2)
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, q, k, position_ids):
        return apply_rotary_pos_emb(q, k, self.cos[position_ids], self.sin[position_ids])


class CacheOfFourRows(TableBeforeAutocast):
    """Made for a batch of four."""

    def __call__(self, q, k, position_ids):
        if len(position_ids) > 4:
            raise ValueError("a batch of four at most, please")
        return super().__call__(q, k, position_ids)


class BesideLongerKeys(nn.Module):
    """Queries are the last of their keys."""

    dim = 32

    def turn(self, x, start):
        return halves(x, *waves(torch.arange(start, start + x.shape[2]), self.dim))

    def forward(self, q, k):
        """q: [batch, heads, seq, head_dim]"""
        return self.turn(q, k.shape[2] - q.shape[2]), self.turn(k, 0)


PLAIN = "half pairing, base 10,000"
NEIGHBORS = "interleaved pairing, base 10,000"
RIGHT = [
    right(LlamaRotary, PLAIN, "cast-breaks-it"),
    right(apply_rotary_pos_emb, PLAIN),
    right(complex_numbers.apply_rotary_emb, NEIGHBORS),
    right(complex_numbers.precompute_freqs_cis, NEIGHBORS),
    right(Torchtune, NEIGHBORS),
    right(VLLM, PLAIN),
    right(NeoX, "16 of 64 channels, half pairing, base 10,000"),
    right(GPTJ, NEIGHBORS),
    right(YaRN, "YaRN by 4 from 2,048"),
    right(LeftToTheScale, "YaRN by 4 from 2,048"),
    right(Permuting, "YaRN by 4 from 2,048"),
    right(Llama3, "base 500,000, Llama 3 scaling by 8 from 8,192"),
    right(Megatron, PLAIN),
    right(DeepSeek, "the last 32 of 48 channels, interleaved pairing"),
    right(Proportional, "proportional"),
    right(Together, PLAIN),
    right(flash, PLAIN),
    right(Cached, PLAIN),
    right(RoFormer, NEIGHBORS),
    right(lazy_tables.LazyTables, PLAIN),
    right(OneTensor, PLAIN, "cast-breaks-it"),
    right(OneTensorOfHeadsLast, PLAIN, "cast-breaks-it"),
    right(OutsideOfAutocast, PLAIN),
    right(TableBeforeAutocast, PLAIN),
    right(CacheOfFourRows, ""),
    right(BesideLongerKeys, PLAIN),
    right(FromTwo, "posenc.recipes.llama2(32) from position 2 on", "cast-breaks-it"),
]
