"""What the battery must know of an encoding, and how it drives one in each of the three places."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.arguments import check_whole
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.positions import Coordinates, consecutive
from posenc.testing.seeding import seed

Tensors = tuple[Tensor, ...]
Use = tuple[str, Callable[[], object]]
"""The name of a method, and a call of it."""


@dataclass(frozen=True)
class Case:
    """One encoding, as the battery builds and judges it.

    Args:
        build: The class, or a function with its signature.
        arguments: The arguments that the checks build it with.
        changes: For every other argument a value that must change something that can be seen;
            ``device`` and ``dtype`` have a check of their own.
        limit: Number of positions it has, if it has a last one.
        kv_heads: Key heads beside the query heads, where those are grouped.
        heads: Query heads of the content.
        head_dim: Width of a head of the content, for score encodings.
        bitwise: Whether a row must not change by a bit with the rows around it. Matrix products
            round differently with their shape; then rows may differ by a few roundings.
        lift: How positions ``[*batch, seq]`` become those of this encoding, where it takes others:
            coordinates ``[*batch, seq, axes]``.
        distinct: Whether adjacent positions always have different tables.
        heads_first: The layout that the arguments ask for, for encodings of queries and keys.

    Raises:
        ValueError: A number of heads or positions, or a width, is no whole number from 1 on.

    Example:
        >>> from posenc import Sinusoidal
        >>> from posenc.testing import battery
        >>> [check() for check in battery(Case(Sinusoidal, {"dim": 8})) if check.name == "purity"]
        [None]
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
        """The encoding, with the same random parameters each time, in evaluation mode."""
        seed()
        return self.build(**{**self.arguments, **changes}).eval()

    def subject(self) -> "Subject":
        """The driver for the place of this encoding.

        Raises:
            TypeError: It implements none of the three interfaces.
        """
        module = self.module()
        for interface, driver in DRIVERS.items():
            if isinstance(module, interface):
                return driver(self)
        raise TypeError(
            f"{type(module).__name__} is none of {', '.join(i.__name__ for i in DRIVERS)}. "
            f"Implement one of the interfaces in posenc.encodings.base."
        )

    def far(self, *positions: int) -> list[int]:
        """Those of ``positions`` that exist for this encoding."""
        return [p for p in positions if self.limit is None or p < self.limit]


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

    def tables(self, module: nn.Module, positions: Tensor, dtype=None) -> Tensor:
        """The table at ``positions``."""
        return module.table(self.lifted(positions), dtype=dtype)  # type: ignore[operator]

    def lifted(self, positions: Any) -> Any:
        """The positions as the encoding takes them; coordinates are there already."""
        if self.case.lift is None or isinstance(positions, Coordinates):
            return positions
        return self.case.lift(positions.long()).to(positions.dtype)

    def placed(
        self, positions: Tensor | Coordinates | None, seq: int, device: torch.device
    ) -> Tensor | Coordinates | None:
        """What to pass as positions: none where none are given, unless they must be lifted."""
        if self.case.lift is None:
            return positions
        return self.lifted(consecutive(seq, device=device) if positions is None else positions)

    def run(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        """What the encoding makes of the content."""
        made = module(*content, positions)
        return made if isinstance(made, tuple) else (made,)

    def run_all(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        """The same, and what it makes of values and of the output of attention, if anything."""
        made = self.run(module, content, positions)
        changes = [f"changes_{part}" for part in ("values", "output")]
        if not any(getattr(module, name, False) for name in changes):
            return made
        if positions is None:
            positions = consecutive(content[0].shape[-2], device=content[0].device)
        table = self.tables(module, positions, torch.promote_types(made[0].dtype, torch.float32))
        if getattr(module, "changes_values", False):
            v = content[1] if self.case.heads_first else content[1].transpose(-2, -3)
            made = (*made, module.encode_values(v, table))  # type: ignore[operator]
        if getattr(module, "changes_output", False):
            made = (*made, self.output(module, content, made, table))
        return made

    def output(self, module: nn.Module, content: Tensors, made: Tensors, table: Tensor) -> Tensor:
        """``encode_output`` of some output; there is none in the place of tokens."""
        raise TypeError("Use the driver of a place inside attention.")

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        """The calls in which content meets a table that is given, by their names."""
        return []

    def run_rows(
        self, module: nn.Module, content: Tensors, positions: Tensor, rows: Tensor
    ) -> Tensors:
        """What it makes of the tokens in ``rows`` alone, as in decoding or on one rank."""
        return self.run(module, self.rows(content, rows), positions[..., rows])

    def pick(self, table: Tensor, rows: slice | Tensor) -> Tensor:
        """The part of an unbatched table that speaks of the tokens in ``rows``."""
        return table[rows]

    def rows(self, made: Tensors, rows: Tensor) -> Tensors:
        """The tokens in ``rows`` of content or of a result."""
        return tuple(part.index_select(-2, rows) for part in made)


class Tokens(Subject):
    """Embeddings ``[*batch, seq, dim]``."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        return [(seq, self.case.module().dim)]  # type: ignore[list-item]

    def run(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        placed = self.placed(positions, content[0].shape[-2], content[0].device)
        return super().run(module, content, placed)

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        return [("encode", partial(module.encode, content[0], table))]  # type: ignore[arg-type]


class QueriesKeys(Subject):
    """Queries ``[*batch, heads, seq, head_dim]`` and keys with fewer heads."""

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        width = self.case.module().head_dim
        return [(heads, seq, width) for heads in (self.case.heads, self.case.kv_heads)]  # type: ignore[misc]

    def run(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        positions = self.placed(positions, content[0].shape[-2], content[0].device)
        if self.case.heads_first:
            return module(*content, positions)
        made = module(*(part.transpose(-2, -3) for part in content), positions)
        return tuple(part.transpose(-2, -3) for part in made)

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        if not self.case.heads_first:
            content = tuple(part.transpose(-2, -3) for part in content)
        q, k = content
        names = {"encode_queries": (q,), "encode_keys": (k,), "encode_both": (q, k)}
        if module.changes_values:
            names["encode_values"] = (k,)
        if module.changes_output:
            names["encode_output"] = (q,)
        return [
            (name, partial(getattr(module, name), *given, table)) for name, given in names.items()
        ]

    def output(self, module: nn.Module, content: Tensors, made: Tensors, table: Tensor) -> Tensor:
        out = content[0] if self.case.heads_first else content[0].transpose(-2, -3)
        return module.encode_output(out, table)  # type: ignore[operator]


class Scores(Subject):
    """Scores ``[*batch, heads, seq, seq]`` with the queries and keys that they came from.

    Encodings that read the hidden state are given that too, ``[*batch, seq, dim]``.
    """

    def shapes(self, seq: int) -> list[tuple[int, ...]]:
        module, heads, width = self.case.module(), self.case.heads, self.case.head_dim
        shapes = [(heads, seq, seq), (heads, seq, width), (self.case.kv_heads, seq, width)]
        return [*shapes, (seq, module.dim)] if module.reads_hidden else shapes  # type: ignore[list-item]

    def tables(self, module: nn.Module, positions: Tensor, dtype=None) -> Tensor:
        lifted = self.lifted(positions)
        return module.table(lifted, lifted, dtype=dtype)  # type: ignore[operator]

    def pick(self, table: Tensor, rows: slice | Tensor) -> Tensor:
        return table[..., rows, :][..., rows]

    def run(self, module: nn.Module, content: Tensors, positions: Any) -> Tensors:
        scores, q, k, *hidden = content
        positions = self.placed(positions, scores.shape[-1], scores.device)
        read = {"q_hidden": hidden[0], "k_hidden": hidden[0]} if hidden else {}
        return (module(scores, positions, positions, q=q, k=k, **read),)

    def output(self, module: nn.Module, content: Tensors, made: Tensors, table: Tensor) -> Tensor:
        return module.encode_output(content[1], made[0].softmax(-1), table)  # type: ignore[operator]

    def uses(self, module: nn.Module, content: Tensors, table: Tensor) -> list[Use]:
        scores, q, k, *hidden = content
        read: dict[str, Any] = {}
        if hidden:
            read = {"q_features": module.query_features(hidden[0])}  # type: ignore[operator]
            read["k_features"] = module.key_features(hidden[0])  # type: ignore[operator]
        encode: Any = module.encode
        uses: list[Use] = [("encode", partial(encode, scores, table, q=q, k=k, **read))]
        if module.changes_output:
            uses.append(("encode_output", partial(self.output, module, content, (scores,), table)))
        return uses

    def run_rows(
        self, module: nn.Module, content: Tensors, positions: Tensor, rows: Tensor
    ) -> Tensors:
        (scores, q), (k, *hidden) = self.rows(content[:2], rows), content[2:]
        some, every = self.lifted(positions[..., rows]), self.lifted(positions)
        read = {}
        if hidden:
            read = {"q_hidden": self.rows(tuple(hidden), rows)[0], "k_hidden": hidden[0]}
        return (module(scores, some, every, q=q, k=k, **read),)


DRIVERS: dict[type, type[Subject]] = {
    TokenEncoding: Tokens,
    QueryKeyEncoding: QueriesKeys,
    ScoreEncoding: Scores,
}
