"""The ways to compute attention with positions in it, all with one meaning."""

from posenc.backends.attention import attention, explain_attention
from posenc.backends.flex import score_mod

__all__ = ["attention", "explain_attention", "score_mod"]
