"""Models of speech and sound that add positions to their tokens."""

from posenc.encodings.positional import Positional
from posenc.encodings.tokens.conventions import timestep
from posenc.encodings.tokens.convolutional import Convolutional
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.encodings.tokens.sinusoidal import Sinusoidal


def ast(dim: int = 768, *, size: tuple[int, int] = (12, 101)) -> Positional:
    """The audio spectrogram transformer: two tokens, then frequency × time.

    Args:
        size: Patches along frequency and time.

    Reference: Gong et al. 2021 (arXiv:2104.01778).
    """
    return Positional(tokens=LearnedGrid(dim, size, prefix=2))


def data2vec_audio(dim: int = 768) -> Positional:
    """data2vec's audio model: five narrow convolutions with layer norms between.

    Reference: Baevski et al. 2022 (arXiv:2202.03555).
    """
    convolutions = Convolutional(dim, 19, depth=5, weight_norm=False, layer_norm=True)
    return Positional(tokens=convolutions)


def musicgen(dim: int = 1024) -> Positional:
    """MusicGen's decoder: cosines, then sines, n^(−i / (dim/2 − 1)).

    Reference: Copet et al. 2023 (arXiv:2306.05284); ``MusicgenSinusoidalPositionalEmbedding``.
    """
    return Positional(tokens=Sinusoidal(dim, convention=timestep(shift=1, flip=True)))


def wav2vec2(dim: int = 768) -> Positional:
    """wav2vec 2.0, HuBERT and UniSpeech: one convolution of 128 taps in 16 groups.

    WavLM begins with the same, and adds to the scores of every layer the numbers of T5's buckets
    (320 of them, to a distance of 800), times a gate of the query's frame, which is not here.

    Reference: Baevski et al. 2020 (arXiv:2006.11477); Hsu et al. 2021, "HuBERT" (arXiv:2106.07447);
    Chen et al. 2021, "WavLM", section 3.2 (arXiv:2110.13900).
    """
    return Positional(tokens=Convolutional(dim))


def whisper_decoder(dim: int = 512, *, max_len: int = 448) -> Positional:
    """Whisper's text decoder: one learned vector for each of 448 positions.

    Reference: Radford et al. 2022 (arXiv:2212.04356).
    """
    return Positional(tokens=Learned(dim, max_len))
