"""What a way of spreading attention among ranks is asked, and what it answers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from posenc.backends.base import Asked
from posenc.distributed.cut import Cut
from posenc.distributed.tokens import Tokens


@dataclass(frozen=True, eq=False)
class SpreadRequest(Asked):
    """One call of attention over rows that are cut."""

    cut: Cut
    whole: Tokens  # as encodings see them
    own: Tokens

    @property
    def pairwise(self) -> bool:
        """Whether no encoding counts the tokens between query and key."""
        return all(encoding.is_pairwise for encoding in self.scores)

    def bytes_of(self, numbers: int) -> int:
        """Bytes of that many numbers a token of a rank, in the batch."""
        return self.specification.batch * self.cut.local * numbers * self.sizes.dtype.itemsize

    @property
    def key_value_numbers(self) -> int:
        """Numbers of the keys and values of a token."""
        return self.sizes.kv_heads * (self.sizes.head_dim + self.sizes.value_dim)


@dataclass(frozen=True, eq=False)
class Way(ABC):
    """A backend that takes and gives this rank's tokens; see ``posenc.backends.base.Backend``."""

    cut: Cut
    moves: int  # bytes that come to this rank in a forward pass
    inner: str  # what each rank does with them
    name = what = why = ""

    @property
    def reads_padding(self) -> bool:
        """Whether content at padding enters its products, if only to be hidden."""
        return True

    @abstractmethod
    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        """Attention of this rank's queries to the keys of all."""
