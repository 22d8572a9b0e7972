"""What a way of spreading attention among ranks is asked, and what it answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from posenc.backends.base import Sizes, TableBuilder
from posenc.backends.specification import AttentionSpecification
from posenc.distributed.cut import Cut
from posenc.distributed.tokens import Tokens
from posenc.encodings.base import ScoreEncoding


@dataclass(frozen=True, eq=False)
class SpreadRequest:
    """One call of attention over rows that are cut.

    Attributes:
        cut: Who holds which token.
        whole: The whole rows, as encodings see them.
        own: This rank's tokens.
        scores: Encodings of the scores, in order.
        given: Order, window and the rest of the specification.
        sizes: The heads.
        backend: The name of a backend to insist on.
        table: What gives dense tables.
    """

    cut: Cut
    whole: Tokens
    own: Tokens
    scores: Sequence[ScoreEncoding]
    given: AttentionSpecification
    sizes: Sizes
    backend: str | None
    table: TableBuilder

    @property
    def pairwise(self) -> bool:
        """Whether no encoding counts the tokens between query and key."""
        return all(encoding.is_pairwise for encoding in self.scores)

    def bytes_of(self, numbers: int) -> int:
        """Bytes of that many numbers a token of a rank, in the batch."""
        return self.given.batch * self.cut.local * numbers * self.sizes.dtype.itemsize

    @property
    def key_value_numbers(self) -> int:
        """Numbers of the keys and values of a token."""
        return self.sizes.kv_heads * (self.sizes.head_dim + self.sizes.value_dim)


@dataclass(frozen=True, eq=False)
class Way(ABC):
    """A backend that takes and gives this rank's tokens; see ``posenc.backends.base.Backend``.

    Attributes:
        cut: Who holds which token.
        moves: How many bytes come to this rank in a forward pass.
        inner: What each rank does with them.
        name: What it is called.
        what: What moves between ranks.
        why: Why it serves.
    """

    cut: Cut
    moves: int
    inner: str
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
