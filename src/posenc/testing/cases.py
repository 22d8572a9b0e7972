"""What the battery needs to know of an encoding, and how it runs one in each place."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding, working_dtype
from posenc.positions import Coordinates, consecutive

Tensors = tuple[Tensor, ...]
Rows = slice | list[int] | Tensor

FEWEST = 13  # positions that every check needs: 8 tokens in a row, from 5 on at the latest


def seed(number: int = 0) -> None:
    """``torch.manual_seed(number)``, which is slow for kinds of devices that are not there."""
    everywhere = torch.accelerator.is_available()
    (torch.manual_seed if everywhere else torch.default_generator.manual_seed)(number)


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
    heads_first: bool = True

    def module(self, **changes: Any) -> nn.Module:
        """The encoding in evaluation mode, with the same parameters each time.

        Arguments that are modules are copied, so a check cannot change them for the next.
        """
        seed()
        return self.build(**deepcopy({**self.arguments, **changes})).eval()

    def subject(self) -> "Subject":
        """A new encoding, with how to run it in its place."""
        module = self.module()
        for interface, driver in DRIVERS:
            if isinstance(module, interface):
                return driver(self, module)
        raise TypeError(f"{type(module).__name__} is no encoding")

    def far(self, *positions: int, ahead: int = 0) -> list[int]:
        """The ``positions`` that exist for this encoding, with so many ``ahead`` of each."""
        return [p for p in positions if self.limit is None or p + ahead < self.limit]


@dataclass(frozen=True)
class Subject:
    """An encoding, content for its place, and how to run it on that."""

    case: Case
    module: Any

    def fresh(self, dtype: torch.dtype | None = None) -> Self:
        """A new one, its parameters cast."""
        module = self.case.module()
        return self.of(module if dtype is None else module.to(dtype))

    def of(self, module: nn.Module) -> Self:
        """The same with another module."""
        return replace(self, module=module)

    def claims(self, name: str, usual: Any = False) -> Any:
        """What the encoding claims; most do not name each claim."""
        return getattr(self.module, name, usual)

    def content(self, seq: int, batch: tuple[int, ...] = (2,), dtype=torch.float32) -> Tensors:
        """Seeded random content of ``seq`` tokens."""
        generator = torch.Generator().manual_seed(seq)
        return tuple(
            torch.randn(*batch, *shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in self.shapes(seq)
        )

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        """The shapes of the content, less its batch axes."""
        raise NotImplementedError

    def lifted(self, positions: Any) -> Any:
        """The positions as the encoding takes them."""
        if positions is None or self.case.lift is None or isinstance(positions, Coordinates):
            return positions
        return self.case.lift(positions.long()).to(positions.dtype)

    def tables(self, positions: Tensor | Coordinates, dtype=None) -> Tensor:
        """The table at ``positions``."""
        return self.module.table(self.lifted(positions), dtype=dtype)

    def called(self, content: Tensors, positions: Any) -> Any:
        """What a call gives."""
        return self.module(*content, self.lifted(positions))

    def call(self, content: Tensors, positions: Any = None) -> Tensors:
        """The results of one call of the encoding; points of a grid have no default."""
        if positions is None and self.case.lift is not None:
            positions = consecutive(content[0].shape[-2], device=content[0].device)
        made = self.called(content, positions)
        return made if isinstance(made, tuple) else (made,)

    def run(self, content: Tensors, positions: Any = None) -> Tensors:
        """The results of one call, then of the methods that attention and caches call besides."""
        made, kind = self.call(content, positions), type(self.module)
        beside = [part for part in ("values", "output") if self.claims(f"changes_{part}")]
        if getattr(kind, "encode_both", None) not in (None, QueryKeyEncoding.encode_both):
            beside += ["queries", "keys"]  # whose methods the call does not use
        if not beside:
            return made
        if positions is None:
            positions = consecutive(content[0].shape[-2], device=content[0].device)
        table = self.tables(positions, working_dtype(content[0].dtype))
        uses = self.uses(content, table)
        return *made, *self.laid_out(tuple(uses[f"encode_{part}"]() for part in beside))

    def laid_out(self, parts: Tensors) -> Tensors:
        """Content as the encoding takes it, or results as the content of the battery."""
        return parts

    def uses(self, content: Tensors, table: Tensor) -> dict[str, Callable[[], Any]]:
        """Calls of the methods that meet content with a table."""
        raise NotImplementedError

    def alone(
        self, content: Tensors, positions: Tensor, rows: Tensor, keys: Sequence[Tensor]
    ) -> Tensors:
        """The results for the tokens in ``rows``, with a cache of keys that came in parts."""
        return self.run(self.rows(content, rows), positions[rows])

    def pick(self, table: Tensor, rows: Rows) -> Tensor:
        """The part of an unbatched table for the tokens in ``rows``."""
        return table[rows]

    def rows(self, made: Tensors, rows: Tensor, keys: int | None = None) -> Tensors:
        """The tokens in ``rows`` of content or of a result, with scores of the first keys."""
        return tuple(part.index_select(-2, rows) for part in made)


class Tokens(Subject):
    """Embeddings ``[*batch, seq, dim]``."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        return [(seq, self.module.dim)]

    def uses(self, content: Tensors, table: Tensor) -> dict[str, Callable[[], Any]]:
        return {"encode": partial(self.module.encode, *content, table)}


class QueriesKeys(Subject):
    """Queries ``[*batch, heads, seq, head_dim]`` and keys with fewer heads."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        return [(n, seq, self.module.head_dim) for n in (self.case.heads, self.case.kv_heads)]

    def called(self, content: Tensors, positions: Any) -> Any:
        return self.laid_out(super().called(self.laid_out(content), positions))

    def laid_out(self, parts: Tensors) -> Tensors:
        """Heads first as the encoding takes them, and back again."""
        return parts if self.case.heads_first else tuple(part.transpose(-2, -3) for part in parts)

    def uses(self, content: Tensors, table: Tensor) -> dict[str, Callable[[], Any]]:
        (q, k), module = self.laid_out(content), self.module
        given = {"queries": (q,), "keys": (k,), "both": (q, k)}
        given |= {"values": (k,)} if module.changes_values else {}
        given |= {"output": (q,)} if module.changes_output else {}
        uses = {f"encode_{part}": x for part, x in given.items()}
        return {name: partial(getattr(module, name), *x, table) for name, x in uses.items()}


class Scores(Subject):
    """Scores ``[*batch, heads, seq, seq]`` with their queries and keys.

    Encodings that read the hidden state also get it, ``[*batch, seq, dim]``.
    """

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        heads, kv_heads, width = self.case.heads, self.case.kv_heads, self.case.head_dim
        shapes = [(heads, seq, seq), (heads, seq, width), (kv_heads, seq, width)]
        return [*shapes, (seq, self.module.dim)] if self.module.reads_hidden else shapes

    def tables(self, positions: Tensor | Coordinates, dtype=None) -> Tensor:
        lifted = self.lifted(positions)
        return self.module.table(lifted, lifted, dtype=dtype)

    def pick(self, table: Tensor, rows: Rows) -> Tensor:
        return table[..., rows, :][..., rows]

    def called(self, content: Tensors, positions: Any, **said: Any) -> Tensor:
        scores, q, k, *hidden = content
        at = self.lifted(positions)
        read = {name: x for x in hidden for name in ("q_hidden", "k_hidden")}
        return self.module(scores, at, at, q=q, k=k, **read, **said)

    def uses(self, content: Tensors, table: Tensor) -> dict[str, Callable[[], Any]]:
        (scores, q, k, *hidden), module = content, self.module
        read = [("q_features", module.query_features), ("k_features", module.key_features)]
        given = {name: feature(x) for x in hidden for name, feature in read}
        uses = {"encode": partial(module.encode, scores, table, q=q, k=k, **given)}
        if module.changes_output:
            every = torch.arange(scores.shape[-1], device=scores.device)
            weights = _weights(scores, every, every)
            uses["encode_output"] = partial(module.encode_output, q, weights, table)
        return uses

    def rows(self, made: Tensors, rows: Tensor, keys: int | None = None) -> Tensors:
        scores, *rest = super().rows(made, rows)
        return scores[..., :keys], *rest

    def alone(
        self, content: Tensors, positions: Tensor, rows: Tensor, keys: Sequence[Tensor]
    ) -> Tensors:
        """The queries in ``rows`` with keys in their order, the features of all parts joined."""
        (scores, q, k, *hidden), module = content, self.module
        every, order = torch.cat([*keys]).sort()
        scores, q = self.rows((scores.index_select(-1, every), q), rows)
        read = {}
        for x in hidden:
            of_keys = [module.key_features(x.index_select(-2, part)) for part in keys]
            joined = None if of_keys[0] is None else torch.cat(of_keys, -2).index_select(-2, order)
            of_queries = module.query_features(x.index_select(-2, rows))
            read = {"q_features": of_queries, "k_features": joined}
        places = (self.lifted(positions[chosen]) for chosen in (rows, every))
        table = module.table(*places, dtype=working_dtype(scores.dtype))
        made = module.encode(scores, table, q=q, k=k.index_select(-2, every), **read)
        if not module.changes_output:
            return (made,)
        return made, module.encode_output(q, _weights(scores, rows, every), table)


def _weights(scores: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
    """Causal weights of attention."""
    return scores.masked_fill(keys > rows.unsqueeze(-1), -torch.inf).softmax(-1)


DRIVERS = ((TokenEncoding, Tokens), (QueryKeyEncoding, QueriesKeys), (ScoreEncoding, Scores))
