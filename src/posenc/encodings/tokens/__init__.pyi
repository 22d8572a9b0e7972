# The public names, one line an export.
from .axial import AxialSinusoidal as AxialSinusoidal
from .convolutional import Convolutional as Convolutional
from .features import NeRFFeatures as NeRFFeatures
from .features import PerceiverFeatures as PerceiverFeatures
from .features import RandomFourierFeatures as RandomFourierFeatures
from .features import Time2Vec as Time2Vec
from .learned import AxialLearned as AxialLearned
from .learned import Learned as Learned
from .learned import LevelEmbedding as LevelEmbedding
from .learned_grid import LearnedGrid as LearnedGrid
from .peg import PEG as PEG
from .sinusoidal import Sinusoidal as Sinusoidal
