# The public names, one line an export.
from .axial import AxialSinusoidal as AxialSinusoidal
from .convolutional import Convolutional as Convolutional
from .features import NeRFFeatures as NeRFFeatures
from .features import PerceiverFeatures as PerceiverFeatures
from .features import RandomFourierFeatures as RandomFourierFeatures
from .learned import AxialLearned as AxialLearned
from .learned import Learned as Learned
from .learned_grid import LearnedGrid as LearnedGrid
from .level import LevelEmbedding as LevelEmbedding
from .peg import PEG as PEG
from .sinusoidal import Sinusoidal as Sinusoidal
from .time2vec import Time2Vec as Time2Vec
