"""Rotary that turns values too, and turns what attention gives back."""

from posenc.encodings.queries_keys.rotary import AroundRotary
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.encodings.shapes import CosSin, CosSinRows, Dtype, Heads, Row


class CounterRotary(AroundRotary):
    """Queries, keys and values are rotated as by ``rotary``, and the output by the opposite angle.

    out_i = R(−p_i) Σ_j w_ij R(p_j) v_j = Σ_j w_ij R(p_j − p_i) v_j

    So values too are relative. DeepSeek V4 has one vector for key and value: ``attention(q, kv,
    kv)``, with ``keys_encoded=True`` for what its cache holds.

    Reference:
        DeepSeek-AI 2026, DeepSeek-V4, ``DeepseekV4Attention`` in transformers; Su's
        "VO-RoPE", which turns values and output (kexue.fm/archives/10862), beside rotary.

    Example:
        >>> import torch
        >>> from posenc import Positional, Rotary, attention
        >>> counter = CounterRotary(Rotary(8, pairing="interleaved"))
        >>> q, kv = torch.randn(1, 4, 5, 8), torch.randn(1, 1, 5, 8)
        >>> attention(q, kv, kv, positional=Positional(queries_keys=counter)).shape
        torch.Size([1, 4, 5, 8])
    """

    changes_values = changes_output = True

    def table(self, positions: Row, *, dtype: Dtype = None) -> CosSin:
        return self.rotary.table(positions, dtype=dtype)

    def encode_values(self, v: Heads, table: CosSinRows) -> Heads:
        """``v`` rotated as keys are."""
        return self.rotary.encode_keys(v, table)

    def encode_output(self, out: Heads, table: CosSinRows) -> Heads:
        """``out`` rotated by the opposite angle."""
        rotary, back = self.rotary, self.rotary.layout.backwards()
        return rotate_heads(out, table, back, rotary.head_dim, rotary.rotated_dim)
