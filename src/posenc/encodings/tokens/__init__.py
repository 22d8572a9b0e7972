"""Place one: encodings that are added to, or mixed into, the token embeddings."""

from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.convolutional import Convolutional
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.encodings.tokens.level import LevelEmbedding
from posenc.encodings.tokens.nerf import NeRFFeatures
from posenc.encodings.tokens.peg import PEG
from posenc.encodings.tokens.random_fourier import RandomFourierFeatures
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.encodings.tokens.time2vec import Time2Vec

__all__ = [
    "PEG",
    "AxialSinusoidal",
    "Convolutional",
    "Learned",
    "LearnedGrid",
    "LevelEmbedding",
    "NeRFFeatures",
    "RandomFourierFeatures",
    "Sinusoidal",
    "Time2Vec",
]
