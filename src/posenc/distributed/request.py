"""What a way of spreading attention must know to say whether it serves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from posenc.backends.base import Sizes, TableBuilder
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding

if TYPE_CHECKING:
    from posenc.distributed.spreading import ShardedAttention


class Way(Protocol):
    """A backend that takes and gives this rank's tokens; see ``posenc.backends.base.Backend``."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def why(self) -> str:
        """Why it serves."""
        ...

    @property
    def what(self) -> str:
        """What moves between ranks."""
        ...

    @property
    def moves(self) -> int:
        """How many bytes come to this rank in a forward pass."""
        ...

    @property
    def inner(self) -> str:
        """What each rank does with them."""
        ...

    @property
    def reads_padding(self) -> bool:
        """Whether content at padding enters its products, if only to be hidden."""
        ...

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        """Attention of this rank's queries to the keys of all."""
        ...


@dataclass(frozen=True)
class SpreadRequest:
    """One call of attention over shards.

    Attributes:
        attention: The tokens of all ranks.
        scores: Encodings of the scores, in order.
        given: Order, window and the rest of the specification.
        sizes: The heads.
        backend: The name of a backend to insist on.
        table: What gives dense tables.
    """

    attention: "ShardedAttention"
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
        return self.given.batch * self.attention.shards.local * numbers * self.sizes.dtype.itemsize

    @property
    def key_value_numbers(self) -> int:
        """Numbers of the keys and values of a token."""
        return self.sizes.kv_heads * (self.sizes.head_dim + self.sizes.value_dim)
