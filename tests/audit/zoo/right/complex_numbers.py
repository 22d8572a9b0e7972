"""Meta's Llama: a table of complex numbers, and the function that multiplies with it."""

import torch
from tests.audit.zoo.arithmetic import powers


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = torch.outer(torch.arange(end, dtype=torch.float32), powers(dim, theta))
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_, xk_ = (torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) for x in (xq, xk))
    freqs_cis = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)
