"""Models that add positions to their token embeddings."""

from posenc.encodings.positional import Positional
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.sinusoidal import Sinusoidal


def vaswani2017(dim: int = 512, *, dropout: float = 0.1) -> Positional:
    """The first transformer: √d · embedding + sinusoids, then dropout.

    Reference: Vaswani et al. 2017, sections 3.4, 3.5 and 5.4 (arXiv:1706.03762).
    """
    return Positional(tokens=Sinusoidal(dim, scale="sqrt_dim", dropout=dropout))


def bert(dim: int = 768, *, max_len: int = 512) -> Positional:
    """BERT: one learned vector for each of 512 positions; its dropout comes after a norm.

    Reference: Devlin et al. 2019 (arXiv:1810.04805).
    """
    return Positional(tokens=Learned(dim, max_len))


def m2m100(dim: int = 1024) -> Positional:
    """M2M-100 (and fairseq): √d · embedding + halves of sinusoids, counted from 2.

    Reference: Fan et al. 2021 (arXiv:2010.11125); the offset is the padding index + 1.
    """
    return Positional(
        tokens=Sinusoidal(dim, convention="tensor2tensor", scale="sqrt_dim", offset=2)
    )


def whisper_encoder(dim: int = 512) -> Positional:
    """Whisper's audio encoder: halves of sinusoids, no scale.

    Reference: Radford et al. 2022 (arXiv:2212.04356).
    """
    return Positional(tokens=Sinusoidal(dim, convention="tensor2tensor"))


def opt(dim: int = 768, *, max_len: int = 2048) -> Positional:
    """OPT: learned positions, two unused rows before the first.

    Reference: Zhang et al. 2022 (arXiv:2205.01068).
    """
    return Positional(tokens=Learned(dim, max_len, offset=2))
