"""Every rank gathers the keys and values of all, in the order of the row."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from posenc.backends.base import Backend
from posenc.backends.choice import considered, explained
from posenc.backends.explicit import Features, reading
from posenc.distributed.request import SpreadRequest, Way
from posenc.distributed.tokens import between


@dataclass(frozen=True, eq=False)
class Gather(Way):
    """Own queries meet all keys; each rank holds the keys and values of the whole rows."""

    backend: Backend
    features: Features | None = None  # what encodings read in the hidden state of own tokens
    name = "gather"
    what = "keys and values of all ranks come here"
    why = "it serves every encoding"

    @property
    def reads_padding(self) -> bool:
        """As the backend does."""
        return self.backend.reads_padding

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        rows = self.cut.join(torch.cat((key, value), dim=-1), 2)
        key, value = rows.split((key.shape[-1], value.shape[-1]), dim=-1)
        backend = reading(self.backend, self._features_of_all())
        return backend(query, key, value, scale=scale, dropout_p=dropout_p)

    def reading(self, features: Features) -> "Gather":
        """The same with what encodings read in the hidden state."""
        return replace(self, features=features)

    def _features_of_all(self) -> Features:
        """The same, with what they read of the keys of all ranks."""
        return {
            encoding: each if each.keys is None else each._replace(keys=self.cut.join(each.keys, 1))
            for encoding, each in (self.features or {}).items()
        }


def gather(request: SpreadRequest) -> Gather:
    """The way; it serves everything."""
    sizes = request.sizes
    spec = between(request.own, request.whole, request.specification, pairwise=request.pairwise)
    chosen, passed = considered(
        list(request.scores), spec, heads=sizes.heads, dtype=sizes.dtype, table=request.table,
        backend=request.backend,
    )  # fmt: skip
    moves = (request.cut.world - 1) * request.bytes_of(request.key_value_numbers)
    return Gather(request.cut, moves, explained(chosen, passed), chosen)
