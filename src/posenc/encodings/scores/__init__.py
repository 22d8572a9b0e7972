"""Place three: encodings that change the attention scores before softmax."""

from posenc.encodings.scores.alibi import ALiBi

__all__ = ["ALiBi"]
