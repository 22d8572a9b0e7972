"""The interfaces of backends: a request, and the backend that serves it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from posenc.backends.specification import AttentionSpecification, once
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.bias import ScoreBias

TableBuilder = Callable[..., Tensor]
"""(encoding, q_positions, k_positions, dtype=...) → the table of an encoding of scores."""


def built(encoding: ScoreEncoding, *positions: Any, dtype: torch.dtype) -> Tensor:
    """The table, computed now."""
    return encoding.table(*positions, dtype=dtype)


class Backend(Protocol):
    """Attention for one specification; all of them mean the same and differ in cost."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def why(self) -> str:
        """Why it serves, and what it holds in memory."""
        ...

    @property
    def reads_padding(self) -> bool:
        """Whether content at padding enters its products, if only to be hidden."""
        ...

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        """softmax(what the specification makes of query · key · scale) · value."""
        ...


@dataclass(eq=False)
class Request:
    """What a backend must know to say whether it serves."""

    scores: Sequence[ScoreEncoding]  # encodings of the scores, in order
    specification: AttentionSpecification  # who stands where, and who sees whom
    dtype: torch.dtype  # the dtype in which scores are formed: float32 at least
    dropout_p: float  # probability of dropping a weight
    table: TableBuilder  # what gives dense tables; one that keeps them may save work
    insisted: bool  # whether the caller named this backend, so that cost is no reason to refuse

    @once
    def biases_alone(self) -> bool:
        """Whether every encoding only adds a number to scores, and leaves the output alone."""
        for encoding in self.scores:
            if not isinstance(encoding, ScoreBias) or encoding.changes_output:
                return False
        return True

    @once
    def distance_alone(self) -> bool:
        """Whether all of them are biases that go by distance alone."""
        for encoding in self.scores:
            if not encoding.has_profile:
                return False
        return self.biases_alone

    @property
    def may_learn(self) -> bool:
        """Whether a parameter of an encoding is trained, in this pass or in one of its repeats."""
        return any(p.requires_grad for e in self.scores for p in e.parameters())

    @property
    def learns(self) -> bool:
        """Whether gradients must reach a parameter of an encoding."""
        return self.may_learn and torch.is_grad_enabled()

    def bias_table(self, encoding: ScoreEncoding) -> Tensor:
        """The table of one encoding, with a batch axis where it is a bias."""
        spec = self.specification
        made = self.table(encoding, spec.queries, spec.keys, dtype=self.dtype)
        with_batch = made.ndim == 4 or not isinstance(encoding, ScoreBias)
        return made if with_batch else made.unsqueeze(0)


@dataclass(frozen=True)
class Sizes:
    """The heads of attention."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    dtype: torch.dtype


@dataclass(frozen=True, eq=False)
class Asked:
    """What a call says of attention over tokens that are cut among devices."""

    scores: Sequence[ScoreEncoding]
    specification: AttentionSpecification
    sizes: Sizes
    spread: str | None  # how tokens shall meet, and by which backend; None: any
    backend: str | None
    dropout_p: float
    table: TableBuilder


class Spreading(Protocol):
    """One call of attention over tokens that are cut among devices."""

    specification: AttentionSpecification  # this device's tokens among themselves

    def considered(self, asked: Asked) -> tuple[Backend, str]:
        """A backend that takes and gives this device's tokens, and why that one."""
        ...


class Dropout(Protocol):
    """Dropout of hidden states that are cut among devices."""

    def of_block(self, index: int) -> "Dropout":
        """That of one block."""
        ...

    def __call__(self, x: Tensor, probability: float, use: int = 0) -> Tensor:
        """``x`` with elements dropped; ``use`` tells one use in a block from another."""
        ...


class Sharded(Protocol):
    """Keys, and perhaps queries, cut among devices, as ``posenc.distributed`` has them."""

    cuts_keys_alone: bool  # whether queries are the same on all devices

    def spreading(self, given: AttentionSpecification) -> Spreading:
        """Attention among all of them, for ``given``: what one call says of this device's."""
        ...


class ShardedKeys(Sharded, Protocol):
    """Keys of which each device keeps some, while queries are the same on all."""

    group: Any  # the devices

    def kept(self, first: int, count: int, device: torch.device) -> Tensor:
        """Which of the tokens at ``first``, ``first`` + 1, … of a row this device keeps."""
        ...

    def check(self, scores: Sequence[ScoreEncoding]) -> None:
        """Raise for an encoding that needs the keys of all devices together."""
        ...


class ShardedTokens(Sharded, Protocol):
    """Whole rows of tokens cut among devices."""

    length: int  # number of tokens of a whole row
    local: int  # number of tokens of a row on this device
    group: Any  # the devices
    positions: Tensor  # where these stand, each document counted from 0 and padding for nothing
    padding_mask: Tensor | None  # true where they are real; None: all are
    document_ids: Tensor | None  # documents of packed rows; None: each row is one
    whole: Any  # the rows of all devices; whole.real is the padding mask of all their tokens

    @property
    def places(self) -> Tensor:
        """Where these lie in the row, each; −1 where this device holds none."""
        ...

    def join(self, part: Tensor, dim: int = 1) -> Tensor:
        """The whole of what each device has a part of."""
        ...

    def hidden_dropout(self) -> Dropout:
        """Dropout for one pass, the same on every device."""
        ...
