"""What the battery needs to know of an encoding, and how it runs one in each place."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.base import (
    QueryKeyEncoding,
    ScoreEncoding,
    TokenEncoding,
    working_dtype,
)
from posenc.positions import Coordinates, consecutive
from posenc.testing.seeding import seed

Tensors = tuple[Tensor, ...]
Use = tuple[str, Callable[[], object]]
"""The name of a method, and a call of it."""

FEWEST = 13
"""Positions that every check needs: 8 tokens in a row, from 5 on at the latest."""


@dataclass(frozen=True)
class Case:
    """One encoding and the arguments to test it with.

    Args:
        build: The class, or a function with its signature.
        arguments: The arguments that the checks build it with.
        changes: A value for every other argument, which must change the encoding; ``device`` and
            ``dtype`` are checked separately.
        limit: Number of positions, if there is a last one. Some checks need 13.
        heads: Query heads of the content.
        kv_heads: Key heads of the content.
        head_dim: Width of a head of the content, for score encodings.
        bitwise: Whether a row must be the same bit for bit among other rows. Matrix products round
            differently with their shape; then rows may differ by a few roundings.
        lift: How positions ``[*batch, seq]`` become coordinates ``[*batch, seq, axes]``, where the
            encoding takes these.
        distinct: Whether adjacent positions always have different tables.
        heads_first: The layout that the arguments ask for, for encodings of queries and keys.
    """

    build: Callable[..., nn.Module]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    bitwise: bool = True
    lift: Callable[[Tensor], Tensor] | None = None
    distinct: bool = True
    heads_first: bool = True

    def __post_init__(self):
        check_whole(heads=self.heads, kv_heads=self.kv_heads, head_dim=self.head_dim)
        if self.limit is not None:
            check_whole(limit=self.limit)

    def module(self, **changes: Any) -> nn.Module:
        """The encoding in evaluation mode, with the same parameters each time.

        Arguments that are modules are copied, so a check cannot change them for the next.
        """
        seed()
        return self.build(**deepcopy({**self.arguments, **changes})).eval()

    def subject(self) -> "Subject":
        """The driver for the place of this encoding."""
        module = self.module()
        for interface, driver in DRIVERS.items():
            if isinstance(module, interface):
                return driver(self)
        known = ", ".join(interface.__name__ for interface in DRIVERS)
        raise TypeError(f"{type(module).__name__} is none of {known}.")

    def far(self, *positions: int, ahead: int = 0) -> list[int]:
        """The ``positions`` that exist for this encoding, with so many ``ahead`` of each."""
        return [p for p in positions if self.limit is None or p + ahead < self.limit]

    def within(self, positions: Tensor) -> Tensor:
        """``positions``, those that do not exist replaced by the last one."""
        return positions if self.limit is None else positions.clamp(max=self.limit - 1)


@dataclass(frozen=True)
class Subject:
    """Content for one place, and how to run an encoding on it."""

    case: Case

    def content(self, seq: int, batch: tuple[int, ...] = (2,), dtype=torch.float32) -> Tensors:
        """Seeded random content of ``seq`` tokens."""
        generator = torch.Generator().manual_seed(seq)
        return tuple(
            torch.randn(*batch, *shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in self.shapes(seq)
        )

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        """The shapes of the content, less its batch axes."""
        raise TypeError("Use the driver of a place.")

    def tables(self, module: nn.Module, positions: Tensor | Coordinates, dtype=None) -> Tensor:
        """The table at ``positions``."""
        return module.table(self.lifted(positions), dtype=dtype)  # type: ignore[operator]

    def lifted(self, positions: Any) -> Any:
        """The positions as the encoding takes them."""
        if self.case.lift is None or isinstance(positions, Coordinates):
            return positions
        return self.case.lift(positions.long()).to(positions.dtype)

    def placed(
        self, positions: Tensor | Coordinates | None, seq: int, device: torch.device
    ) -> Tensor | Coordinates | None:
        """The positions to pass: none where none are given, unless they must be lifted."""
        if self.case.lift is None:
            return positions
        return self.lifted(consecutive(seq, device=device) if positions is None else positions)

    def call(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        """The results of one call of the encoding."""
        made = module(*content, positions)
        return made if isinstance(made, tuple) else (made,)

    def run(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        """The results of one call, then of the methods that attention and caches call besides."""
        made, beside = self.call(module, content, positions), self.beside(module)
        if not beside:
            return made
        if positions is None:
            positions = consecutive(content[0].shape[-2], device=content[0].device)
        table = self.tables(module, positions, working_dtype(content[0].dtype))
        uses = self.uses(module, content, table)
        return *made, *self.laid_out(tuple(use() for name, use in uses if name in beside))  # type: ignore[arg-type]

    def beside(self, module: nn.Module) -> tuple[str, ...]:
        """The names of the methods that one call does not use."""
        parts = [part for part in ("values", "output") if getattr(module, f"changes_{part}", False)]
        return tuple(f"encode_{part}" for part in parts)

    def laid_out(self, parts: Tensors) -> Tensors:
        """Content as the encoding takes it, or results as the content of the battery."""
        return parts

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        """The methods that meet content with a table, by their names."""
        return []

    def run_rows(
        self, module: nn.Module, content: Tensors, positions: Tensor, rows: Tensor
    ) -> Tensors:
        """The results for the tokens in ``rows`` alone, as on one rank."""
        return self.run(module, self.rows(content, rows), positions[..., rows])

    def decoded(self, module: nn.Module, content: Tensors, positions: Tensor, step: int) -> Tensors:
        """The results for one token, with a cache of those before it."""
        return self.run_rows(module, content, positions, torch.tensor([step]))

    def seen(self, made: Tensors, step: int) -> Tensors:
        """The part of all results that belongs to that token."""
        return self.rows(made, torch.tensor([step]))

    def pick(self, table: Tensor, rows: slice | Tensor) -> Tensor:
        """The part of an unbatched table for the tokens in ``rows``."""
        return table[rows]

    def rows(self, made: Tensors, rows: Tensor) -> Tensors:
        """The tokens in ``rows`` of content or of a result."""
        return tuple(part.index_select(-2, rows) for part in made)


class Tokens(Subject):
    """Embeddings ``[*batch, seq, dim]``."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        return [(seq, self.case.module().dim)]  # type: ignore[list-item]

    def call(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        placed = self.placed(positions, content[0].shape[-2], content[0].device)
        return super().call(module, content, placed)

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        return [("encode", partial(module.encode, content[0], table))]  # type: ignore[arg-type]


class QueriesKeys(Subject):
    """Queries ``[*batch, heads, seq, head_dim]`` and keys with fewer heads."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        width = self.case.module().head_dim
        return [(heads, seq, width) for heads in (self.case.heads, self.case.kv_heads)]  # type: ignore[misc]

    def call(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        positions = self.placed(positions, content[0].shape[-2], content[0].device)
        return self.laid_out(module(*self.laid_out(content), positions))

    def laid_out(self, parts: Tensors) -> Tensors:
        """Heads first as the encoding takes them, and back again."""
        if self.case.heads_first:
            return parts
        return tuple(part.transpose(-2, -3) for part in parts)

    def beside(self, module: nn.Module) -> tuple[str, ...]:
        kind: Any = type(module)
        together = kind.encode_both is QueryKeyEncoding.encode_both  # which calls both
        apart = () if together else ("encode_queries", "encode_keys")
        return (*super().beside(module), *apart)

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        q, k = self.laid_out(content)
        names = {"encode_queries": (q,), "encode_keys": (k,), "encode_both": (q, k)}
        if module.changes_values:
            names["encode_values"] = (k,)
        if module.changes_output:
            names["encode_output"] = (q,)
        return [
            (name, partial(getattr(module, name), *given, table)) for name, given in names.items()
        ]


class Scores(Subject):
    """Scores ``[*batch, heads, seq, seq]`` with their queries and keys.

    Encodings that read the hidden state also get it, ``[*batch, seq, dim]``.
    """

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        module, heads, width = self.case.module(), self.case.heads, self.case.head_dim
        shapes = [(heads, seq, seq), (heads, seq, width), (self.case.kv_heads, seq, width)]
        return [*shapes, (seq, module.dim)] if module.reads_hidden else shapes  # type: ignore[list-item]

    def tables(self, module: nn.Module, positions: Tensor | Coordinates, dtype=None) -> Tensor:
        lifted = self.lifted(positions)
        return module.table(lifted, lifted, dtype=dtype)  # type: ignore[operator]

    def pick(self, table: Tensor, rows: slice | Tensor) -> Tensor:
        return table[..., rows, :][..., rows]

    def call(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        scores, q, k, *hidden = content
        positions = self.placed(positions, scores.shape[-1], scores.device)
        read = {"q_hidden": hidden[0], "k_hidden": hidden[0]} if hidden else {}
        return (module(scores, positions, positions, q=q, k=k, **read),)

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        scores, q, k, *hidden = content
        read: dict[str, Any] = {}
        if hidden:
            read = {"q_features": module.query_features(hidden[0])}  # type: ignore[operator]
            read["k_features"] = module.key_features(hidden[0])  # type: ignore[operator]
        encode: Any = module.encode
        uses: list[Use] = [("encode", partial(encode, scores, table, q=q, k=k, **read))]
        if module.changes_output:
            output: Any = module.encode_output
            every = torch.arange(scores.shape[-1], device=scores.device)
            uses.append(("encode_output", lambda: output(q, _weights(scores, every, every), table)))
        return uses

    def run_rows(
        self, module: nn.Module, content: Tensors, positions: Tensor, rows: Tensor
    ) -> Tensors:
        every = torch.arange(content[0].shape[-1])
        others = every[~torch.isin(every, rows)]
        return self._over_keys(module, content, positions, rows, [rows, others])

    def decoded(self, module: nn.Module, content: Tensors, positions: Tensor, step: int) -> Tensors:
        tokens = list(torch.arange(step + 1).split(1))
        return self._over_keys(module, content, positions, tokens[-1], tokens)

    def seen(self, made: Tensors, step: int) -> Tensors:
        scores, *rest = super().seen(made, step)
        return scores[..., : step + 1], *rest

    def _over_keys(
        self, module: Any, content: Tensors, positions: Tensor, rows: Tensor, parts: list[Tensor]
    ) -> Tensors:
        """The queries in ``rows`` with the keys of all ``parts``, whose features are joined."""
        scores, q, k, *hidden = content
        keys, order = torch.cat(parts).sort()
        scores, q = self.rows((scores.index_select(-1, keys), q), rows)
        read = {}
        if hidden:
            of_keys = [module.key_features(hidden[0].index_select(-2, part)) for part in parts]
            joined = None if of_keys[0] is None else torch.cat(of_keys, -2).index_select(-2, order)
            of_queries = module.query_features(hidden[0].index_select(-2, rows))
            read = {"q_features": of_queries, "k_features": joined}
        places = (self.lifted(positions[..., chosen]) for chosen in (rows, keys))
        table = module.table(*places, dtype=working_dtype(scores.dtype))
        made = module.encode(scores, table, q=q, k=k.index_select(-2, keys), **read)
        if not module.changes_output:
            return (made,)
        return made, module.encode_output(q, _weights(scores, rows, keys), table)


def _weights(scores: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
    """Causal weights of attention."""
    return scores.masked_fill(keys > rows.unsqueeze(-1), -torch.inf).softmax(-1)


DRIVERS: dict[type, type[Subject]] = {
    TokenEncoding: Tokens,
    QueryKeyEncoding: QueriesKeys,
    ScoreEncoding: Scores,
}
