"""Attention with positions in it: one call, and the backends of one meaning that compute it."""

from posenc.backends.attention import attention, explain_attention
from posenc.backends.flex import score_mod

__all__ = ["attention", "explain_attention", "score_mod"]
