"""What public code does to queries and keys, in its usual styles."""

import math
from contextlib import nullcontext

import torch
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
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


class LlamaRotary(nn.Module):
    """transformers' Llama: a module of cosines and sines, applied by the function beside it."""

    def __init__(self, dim=32, base=10000.0, max_position_embeddings=2048):
        super().__init__()
        self.max_position_embeddings = max_position_embeddings
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq.float()
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


class Torchtune(nn.Module):
    """torchtune: [batch, seq, heads, head_dim], positions by keyword, pairs side by side."""

    def __init__(self, dim=32, max_seq_len=512, base=10_000):
        super().__init__()
        theta = 1.0 / (base ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
        idx_theta = torch.einsum("i, j -> ij", torch.arange(max_seq_len).float(), theta).float()
        cache = torch.stack([torch.cos(idx_theta), torch.sin(idx_theta)], dim=-1)
        self.register_buffer("cache", cache, persistent=False)

    def forward(self, x, *, input_pos=None):
        seq_len = x.size(1)
        rope_cache = self.cache[:seq_len] if input_pos is None else self.cache[input_pos]
        xshaped = x.float().reshape(*x.shape[:-1], -1, 2)
        rope_cache = rope_cache.view(-1, xshaped.size(1), 1, xshaped.size(3), 2)
        x_out = torch.stack(
            [
                xshaped[..., 0] * rope_cache[..., 0] - xshaped[..., 1] * rope_cache[..., 1],
                xshaped[..., 1] * rope_cache[..., 0] + xshaped[..., 0] * rope_cache[..., 1],
            ],
            -1,
        )
        return x_out.flatten(3).type_as(x)


class VLLM(nn.Module):
    """vLLM: positions first, flattened heads, cosines and sines in one cache."""

    def __init__(self, head_size=32, max_position=512, base=10000.0):
        super().__init__()
        self.head_size = head_size
        inv_freq = 1.0 / (base ** (torch.arange(0, head_size, 2, dtype=torch.float) / head_size))
        freqs = torch.einsum("i,j -> ij", torch.arange(max_position, dtype=torch.float), inv_freq)
        cache = torch.cat((freqs.cos(), freqs.sin()), dim=-1)
        self.register_buffer("cos_sin_cache", cache, persistent=False)

    def turn(self, x, cos, sin):
        shape = x.shape
        x = x.view(shape[0], -1, self.head_size)
        x1, x2 = torch.chunk(x, 2, dim=-1)
        cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1).reshape(shape)

    def forward(self, positions, query, key):
        cos, sin = self.cos_sin_cache.index_select(0, positions.flatten()).chunk(2, dim=-1)
        return self.turn(query, cos, sin), self.turn(key, cos, sin)


class NeoX(nn.Module):
    """GPT-NeoX: the first quarter of the head, queries and keys with position ids."""

    def __init__(self, head_dim=64, rotary_pct=0.25):
        super().__init__()
        self.head_dim, self.rotary_ndims = head_dim, int(head_dim * rotary_pct)
        exponent = torch.arange(0, self.rotary_ndims, 2).float() / self.rotary_ndims
        self.inv_freq = 1.0 / (10000**exponent)

    def forward(self, q, k, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos()[:, None].to(q.dtype), emb.sin()[:, None].to(q.dtype)
        made = []
        for x in (q, k):
            rot, kept = x[..., : self.rotary_ndims], x[..., self.rotary_ndims :]
            made.append(torch.cat((rot * cos + rotate_half(rot) * sin, kept), dim=-1))
        return made[0], made[1]


class GPTJ(nn.Module):
    """GPT-J: neighbors in pairs, an offset."""

    def __init__(self, head_dim=32):
        super().__init__()
        self.head_dim = head_dim

    def forward(self, x, offset=0):
        inv_freq = 10000.0 ** -(
            torch.arange(0, self.head_dim, 2, dtype=torch.float32) / self.head_dim
        )
        positions = torch.arange(offset, offset + x.shape[2], dtype=torch.float32)
        angles = positions[:, None] * inv_freq
        sin = angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
        cos = angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * cos + turned * sin


class YaRN(nn.Module):
    """YaRN by 4 from 2,048, with its attention factor."""

    def __init__(self, dim=64, base=10000.0, factor=4.0, trained=2048):
        super().__init__()
        self.max_position_embeddings = int(factor * trained)
        periods = base ** (torch.arange(0, dim, 2).float() / dim)
        low = math.floor(dim * math.log(trained / (32 * 2 * math.pi)) / (2 * math.log(base)))
        high = math.ceil(dim * math.log(trained / (1 * 2 * math.pi)) / (2 * math.log(base)))
        ramp = ((torch.arange(dim // 2).float() - low) / (high - low)).clamp(0, 1)
        self.inv_freq = (1 / (factor * periods)) * ramp + (1 / periods) * (1 - ramp)
        self.mscale = 0.1 * math.log(factor) + 1.0

    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return (emb.cos() * self.mscale).to(x.dtype), (emb.sin() * self.mscale).to(x.dtype)


class LeftToTheScale(YaRN):
    """YaRN as DeepSeek-V3's own code has it: its factor goes into the scale of scores."""

    def __init__(self):
        super().__init__()
        self.mscale = 1.0


class Permuting(YaRN):
    """YaRN as DeepSeek-V2 has it: neighbors come out as halves."""

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        cos, sin = (x[:, None] for x in super().forward(q, position_ids))
        apart = [x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) for x in (q, k)]
        return tuple(x * cos + rotate_half(x) * sin for x in apart)


class Llama3(nn.Module):
    """Llama 3.1's rescaling by 8."""

    def __init__(self, head_dim=64, rope_theta=500000.0):
        super().__init__()
        self.head_dim = head_dim
        freqs = 1.0 / (rope_theta ** (torch.arange(0, head_dim, 2).float() / head_dim))
        self.freqs = self.rescaled(freqs)

    def rescaled(self, freqs):
        made = []
        for freq in freqs.tolist():
            wavelen = 2 * math.pi / freq
            if wavelen < 8192 / 4:
                made.append(freq)
            elif wavelen > 8192 / 1:
                made.append(freq / 8)
            else:
                smooth = (8192 / wavelen - 1) / (4 - 1)
                made.append((1 - smooth) * freq / 8 + smooth * freq)
        return torch.tensor(made)

    def forward(self, q, k, positions):
        angles = positions[:, None, :, None].float() * self.freqs
        cos = torch.cat((angles.cos(), angles.cos()), -1).to(q.dtype)
        sin = torch.cat((angles.sin(), angles.sin()), -1).to(q.dtype)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class Megatron(nn.Module):
    """[seq, batch, heads, head_dim], all rows from 0 on."""

    def __init__(self, dim=32):
        super().__init__()
        inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        freqs = torch.outer(torch.arange(512).float(), inv_freq)
        self.emb = torch.cat((freqs, freqs), dim=-1)[:, None, None, :]

    def forward(self, t):
        freqs = self.emb[: t.shape[0]]
        return t * freqs.cos().to(t.dtype) + rotate_half(t) * freqs.sin().to(t.dtype)


class DeepSeek(nn.Module):
    """The last 32 of 48 channels, pairs side by side."""

    def __init__(self, head_dim=48, rope=32):
        super().__init__()
        self.head_dim, self.rope = head_dim, rope

    def forward(self, q, k, positions):
        inv = 10000.0 ** -(torch.arange(0, self.rope, 2).double() / self.rope)
        angles = positions[:, None, :, None].double() * inv
        cos, sin = angles.cos(), angles.sin()
        made = []
        for x in (q, k):
            kept, turned = x.split((self.head_dim - self.rope, self.rope), dim=-1)
            a, b = turned[..., 0::2], turned[..., 1::2]
            both = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
            made.append(torch.cat((kept, both.to(x.dtype)), dim=-1))
        return tuple(made)


class Proportional(nn.Module):
    """A quarter of the pairs turn, at the speeds of the whole width."""

    def __init__(self, head_dim=64, share=0.25):
        super().__init__()
        exponent = torch.arange(0, head_dim, 2).float() / head_dim
        inv = 1.0 / 10000**exponent
        inv[int(share * head_dim // 2) :] = 0
        self.inv = inv

    def forward(self, x, positions):
        angles = positions[:, None, :, None].float() * self.inv
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Together(nn.Module):
    """Queries and keys [batch, seq, heads, head_dim], from 0 on."""

    def __init__(self, head_dim=32):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, head_dim, 2).float() / head_dim))
        angles = torch.outer(torch.arange(256).float(), inv)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turn(self, x):
        cos = self.cos[: x.shape[1], None].to(x.dtype)
        sin = self.sin[: x.shape[1], None].to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

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
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, q, k, start_pos=0):
        return self.turn(q, start_pos), self.turn(k, start_pos)


class RoFormer(nn.Module):
    """One head, [batch, seq, dim], pairs side by side."""

    def __init__(self, dim=32, max_seq_len=256):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        angles = torch.outer(torch.arange(max_seq_len).float(), inv)
        self.register_buffer("cos", angles.cos().repeat_interleave(2, -1))
        self.register_buffer("sin", angles.sin().repeat_interleave(2, -1))

    def forward(self, x):
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        seq = x.shape[1]
        return x * self.cos[:seq].to(x.dtype) + turned * self.sin[:seq].to(x.dtype)


class OneTensor(nn.Module):
    """Queries or keys alone, named x; halves by slices take positions for them, too."""

    def __init__(self, dim=32):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv", inv, persistent=False)

    def angles(self, seq):
        angles = torch.outer(torch.arange(seq, dtype=torch.float32), self.inv.float())
        return torch.cat((angles, angles), -1)

    def turned(self, x, angles):
        half = x.shape[-1] // 2
        other = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos().to(x.dtype) + other * angles.sin().to(x.dtype)

    def forward(self, x):
        return self.turned(x, self.angles(x.shape[-2]))


class OneTensorOfHeadsLast(OneTensor):
    def forward(self, x):
        return self.turned(x, self.angles(x.shape[1])[:, None])


class OutsideOfAutocast(nn.Module):
    """transformers': a product of matrices, with autocast switched off around it."""

    dim, within = 32, False

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        inv_freq = 10000.0 ** (-torch.arange(0, self.dim, 2) / self.dim)
        rates = inv_freq[None, :, None].expand(len(position_ids), -1, 1)
        off = torch.autocast(q.device.type, enabled=False)
        with nullcontext() if self.within else off:
            angles = (rates @ position_ids[:, None].float()).mT[:, None]
        both = torch.cat((angles, angles), -1)
        cos, sin = both.cos().to(q.dtype), both.sin().to(q.dtype)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class TableBeforeAutocast:
    """A table by a product of matrices, which is made when it is built."""

    def __init__(self, dim=64, max_len=2048):
        inv = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        angles = (torch.arange(max_len).float()[:, None] @ inv[None]).repeat(1, 2)
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, q, k, position_ids):
        cos, sin = self.cos[position_ids][:, None], self.sin[position_ids][:, None]
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class CacheOfFourRows(TableBeforeAutocast):
    """Made for a batch of four."""

    def __call__(self, q, k, position_ids):
        if len(position_ids) > 4:
            raise ValueError("a batch of four at most, please")
        return super().__call__(q, k, position_ids)


class BesideLongerKeys(nn.Module):
    """Queries are the last of their keys."""

    dim = 32

    def first(self, q_len, k_len):
        return k_len - q_len

    def turn(self, x, start):
        angles = torch.arange(start, start + x.shape[2]).double()[:, None] * 10000.0 ** (
            -torch.arange(0, self.dim, 2).double() / self.dim
        )
        both = torch.cat((angles, angles), -1)
        return (x * both.cos() + rotate_half(x) * both.sin()).to(x.dtype)

    def forward(self, q, k):
        """q: [batch, heads, seq, head_dim]"""
        return self.turn(q, self.first(q.shape[2], k.shape[2])), self.turn(k, 0)


class FromTwo(OneTensor):
    """Positions begin at 2, which no score tells."""

    def angles(self, seq):
        return super().angles(seq + 2)[2:]


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
