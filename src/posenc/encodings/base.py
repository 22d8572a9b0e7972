"""The three places where a position can reach a transformer, and the two verbs of each.

=====================  =======================================  =========================
place                  what positions alone say                 how that meets content
=====================  =======================================  =========================
tokens                 ``table(positions)``                     ``encode(x, table)``
queries and keys       ``table(positions)``                     ``encode_queries(q, table)``,
                                                                ``encode_keys(k, table)``
scores                 ``table(q_positions, k_positions)``      ``encode(scores, table, q=, k=)``
=====================  =======================================  =========================

``table`` is exact, free of content, and an ordinary tensor: compute it once, slice it, gather it,
keep it. ``encode`` keeps the shape and the dtype of the content that it is given, and writes into
neither: what comes back is new, or the content itself where nothing is to be changed, as keys of
``QueryTemperature`` and values of most; clone that before writing into it. ``forward`` is
``encode`` of ``table``, written here once: attention and encoders do not call it, and a class with
one of its own is refused. Nothing else in the package is subclassed.

Before any place there are the positions themselves; a ``PositionRemapping`` changes them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.encodings.fixed import FixedOnceBuilt as FixedOnceBuilt
from posenc.encodings.signatures import (
    HEADS,
    check_given,
    check_table,
    held_to_scores,
    held_to_weights,
    row_axes,
)
from posenc.guards import check_dense, floating, may_look
from posenc.guards import working_dtype as working_dtype
from posenc.positions import (
    Coordinates,
    Integers,
    Positions,
    checked,
    checked_distances,
    consecutive,
)


def checked_rows(table: Tensor, positions: Int64[Tensor, "*tokens"]) -> Int64[Tensor, "*tokens"]:
    """``positions`` as rows of a kept table; torch would count negative ones from its end.

    Raises:
        TypeError: They are not integers.
        IndexError: A position is not a row of the table.

    Example:
        >>> checked_rows(torch.zeros(3, 2), torch.tensor([2, -1]))
        Traceback (most recent call last):
        ...
        IndexError: A position is negative or past the last row of the table. Build the table for \
all positions that are asked for.
    """
    positions = checked(positions)
    if positions.is_cpu and may_look(positions) and positions.numel():
        first, last = positions.aminmax()
        if first < 0 or last >= len(table):
            raise IndexError(
                "A position is negative or past the last row of the table. Build the table for all "
                "positions that are asked for."
            )
    return positions


def check_kept(table: Tensor, row_axes: int) -> None:
    """Refuse a table of which positions would not take rows, but what stands before these.

    Raises:
        ValueError: It does not hold one row a position.

    Example:
        >>> check_kept(torch.zeros(2, 5, 2, 4), row_axes=2)
        Traceback (most recent call last):
        ...
        ValueError: The table has shape (2, 5, 2, 4); with positions it holds one row a position, \
of 2 axes here. Leave positions out if its rows are those of the tokens.
    """
    if table.ndim != 1 + row_axes:
        raise ValueError(
            f"The table has shape {tuple(table.shape)}; with positions it holds one row a "
            f"position, of {row_axes} axes here. Leave positions out if its rows are those of the "
            f"tokens."
        )


def check_scores(scores: Tensor, table: Tensor, name: str) -> None:
    """Refuse scores, and a table ``[*rows, heads, q_len, k_len]`` that is not of these scores.

    Raises:
        TypeError: ``scores`` are not floating.
        ValueError: The table is of other heads, queries or keys.

    Example:
        >>> check_scores(torch.zeros(4, 3, 3), torch.zeros(4, 1, 3), "ALiBi")
        Traceback (most recent call last):
        ...
        ValueError: scores have shape (4, 3, 3) and the table (4, 1, 3), which ALiBi takes as \
[*rows, 4, 3, 3]. Pass the positions of these queries and keys, one each.
    """
    check_table(name, "scores", scores.shape[-3], scores, table, (HEADS,))


def _where_defined(kind: type, name: str) -> type:
    """The class whose definition of a name counts in another."""
    return next(each for each in kind.__mro__ if name in vars(each))


def _refuse_forward(kind: type, place: type) -> None:
    """Refuse a class with a ``forward`` of its own.

    Raises:
        TypeError: It has one.
    """
    if kind.forward is not place.forward:  # type: ignore[attr-defined]
        raise TypeError(
            f"{kind.__name__} defines forward in {_where_defined(kind, 'forward').__name__}, which "
            f"attention and encoders do not call: they call table and what encodes. Change these."
        )


class PositionRemapping(ABC):
    """A change of the positions themselves, before any encoding sees them.

    Attributes:
        training_only: Whether evaluation leaves positions as they are.
    """

    training_only: ClassVar[bool]

    @abstractmethod
    def __call__(
        self,
        positions: Int64[Tensor, "*batch seq"],
        *,
        generator: torch.Generator | None = None,
    ) -> Int64[Tensor, "*batch seq"] | Coordinates:
        """The positions where the tokens are taken to stand; ``generator`` draws what is random."""


class TokenEncoding(FixedOnceBuilt, ABC):
    """Place one: added to, or mixed into, the token embeddings.

    Attributes:
        dim: Width of the embeddings.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` (the default) or ``[seq, batch, dim]``.
            It is never guessed from a shape.
        keeps_norm: Claim: every row of the table has the same length.
        keeps_shift: Claim: for each offset k one linear map M_k takes row p to row p + k,
            whatever p.
        is_pointwise: Claim: what becomes of a token depends on its own content and position alone.
            Decoding with a cache and sequences cut among devices need that. Where it does not, as
            in convolutions, the table is the positions, and there are no rows to speak of.
        takes_reals: Claim: ``Coordinates`` stand wherever positions do, as exact as these.
        keeps_neighbors_apart: Claim: no two adjacent whole positions have one row.
    """

    fixed = frozenset(
        {
            *("arithmetic", "base", "convention", "form", "scale", "seed", "stretch"),
            *("axes", "bands", "depth", "dim", "groups", "kernel", "levels", "max_len", "prefix"),
            *("resolution", "size", "weight_norm"),
        }
    )
    fixed_beside_parameters = frozenset({"layer_norm", "offset"})
    meaning = frozenset(
        {"form", "function", "join", "layer_norm", "offset", "scale", "seed", "size"}
    )

    dim: int
    batch_first: bool
    keeps_norm: bool
    keeps_shift: bool
    is_pointwise: bool = True
    takes_reals: bool = False
    keeps_neighbors_apart: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _refuse_forward(cls, TokenEncoding)

    @abstractmethod
    def table(
        self, positions: Int64[Tensor, "*batch seq"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "..."]:
        """What ``positions`` alone say, one row a position."""

    @abstractmethod
    def encode(
        self, x: Float[Tensor, "*batch seq dim"], table: Float[Tensor, "*rows seq dim"]
    ) -> Float[Tensor, "..."]:
        """``x`` with its positions in it; shape and dtype stay those of ``x``."""

    def forward(
        self,
        x: Float[Tensor, "*batch seq dim"],
        positions: Int64[Tensor, "..."] | Positions | None = None,
    ) -> Float[Tensor, "..."]:
        """``encode(x, table(positions))``; without positions, the tokens stand at 0, 1, 2, …"""
        check_dense(x=x)
        if x.ndim < 2:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; {type(self).__name__} takes [*batch, seq, dim]."
            )
        if positions is None:
            positions = consecutive(x.shape[-2 if self.batch_first else 0], device=x.device)
        positions = checked(positions, device=x.device, reals=bool(self.takes_reals))
        table = self.table(positions, dtype=working_dtype(x.dtype))  # type: ignore[arg-type]
        return self.encode(x, table)


class QueryKeyEncoding(FixedOnceBuilt, ABC):
    """Place two: a change of queries and keys inside attention.

    Queries and keys have separate methods: some encodings treat them differently, grouped-query
    attention has fewer key heads, and decoding stores encoded keys. Both keep their shape, except
    that an encoding may make heads wider: then ``encoded_dim`` says so, scores are scaled by the
    width that went in, and a cache keeps keys as wide as they came out.

    Attributes:
        head_dim: Width of one head.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]`` (the default) or
            ``[*batch, seq, heads, head_dim]``. It is never guessed from a shape.
        is_relative: Claim: q·k afterwards depends on positions by their difference alone.
        reads_rows: Whether ``encode_both`` reads rows of a kept table where it uses them; otherwise
            they are better gathered once for all layers.
        row_axes: How many axes a row of the table has, by the signature of ``encode_queries``;
            ``None`` where that leaves it open.
        changes_values: Whether ``encode_values`` does anything.
        changes_output: Whether ``encode_output`` does anything.
        takes_reals: Claim: ``Coordinates`` stand wherever positions do, as exact as these.
        keeps_neighbors_apart: Claim: no two adjacent whole positions have one row.
    """

    fixed = frozenset(
        {
            *("arithmetic", "arrangement", "base", "form", "frequencies", "gain", "gamma", "grid"),
            *("heads_first", "normalize", "pairing", "periods", "phases", "rotated", "scale_base"),
            *("schedules", "sections", "split", "stretch", "vectors"),
            *("axes", "block", "head_dim", "heads", "sizes", "trained_length"),
            "variant",
        }
    )
    meaning = frozenset({"pairing", "rotated", "slow", "speed"})

    head_dim: int
    heads_first: bool = True
    is_relative: bool
    reads_rows: bool = False
    row_axes: int | None = None
    changes_values: bool = False
    changes_output: bool = False
    takes_reals: bool = False
    keeps_neighbors_apart: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _refuse_forward(cls, QueryKeyEncoding)
        _encode_both_as_apart(cls)
        cls.row_axes = row_axes(cls.encode_queries)
        for part in ("values", "output"):
            inherited = getattr(cls, f"encode_{part}") is getattr(
                QueryKeyEncoding, f"encode_{part}"
            )
            if not inherited and not getattr(cls, f"changes_{part}"):
                raise TypeError(
                    f"{cls.__name__} defines encode_{part}, and its changes_{part} is False, by "
                    f"which it would not be called. Write changes_{part} = True beside it."
                )

    @abstractmethod
    def table(
        self, positions: Int64[Tensor, "..."] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "..."]:
        """What ``positions`` alone say; the sequence stays the axis after the batch axes."""

    @property
    def encoded_dim(self) -> int:
        """Width of one head of encoded queries and keys; what it was for all but a few."""
        return self.head_dim

    @abstractmethod
    def encode_queries(
        self, q: Float[Tensor, "*batch heads q_len head_dim"], table: Tensor
    ) -> Float[Tensor, "*batch heads q_len {self.encoded_dim}"]:
        """``q`` with its positions in it; dtype and shape stay, but for ``encoded_dim``."""

    @abstractmethod
    def encode_keys(
        self, k: Float[Tensor, "*batch kv_heads k_len head_dim"], table: Tensor
    ) -> Float[Tensor, "*batch kv_heads k_len {self.encoded_dim}"]:
        """``k`` with its positions in it; dtype and shape stay, but for ``encoded_dim``."""

    def encode_both(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        k: Float[Tensor, "*batch _ _ head_dim"],
        table: Tensor,
        positions: Int64[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "*batch _ _ _"], Float[Tensor, "*batch _ _ _"]]:
        """Both, of the same tokens; with ``positions``, by those rows of a kept ``table``.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: With ``positions``, the table does not hold one row a position.
            IndexError: A position is not a row of the table.
        """
        if positions is not None:
            if self.row_axes is not None:
                check_kept(table, self.row_axes)
            table = table[checked_rows(table, positions)]
        return self.encode_queries(q, table), self.encode_keys(k, table)

    def encode_values(
        self, v: Float[Tensor, "*batch kv_heads k_len value_dim"], table: Tensor
    ) -> Float[Tensor, "*batch kv_heads k_len value_dim"]:
        """``v`` changed by the table of the keys; most give ``v`` itself.

        A cache keeps values encoded, as it does keys.
        """
        return v

    def encode_output(
        self, out: Float[Tensor, "*batch heads q_len value_dim"], table: Tensor
    ) -> Float[Tensor, "*batch heads q_len value_dim"]:
        """What attention gives, changed by the table of the queries; most give ``out`` itself."""
        return out

    def forward(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        k: Float[Tensor, "*batch _ _ head_dim"],
        positions: Int64[Tensor, "..."] | Positions | None = None,
    ) -> tuple[Float[Tensor, "*batch _ _ _"], Float[Tensor, "*batch _ _ _"]]:
        """Both encoded by one table; without positions, the tokens stand at 0, 1, 2, …"""
        check_dense(q=q, k=k)
        if positions is None:
            positions = consecutive(q.shape[-2 if self.heads_first else -3], device=q.device)
        positions = checked(positions, device=q.device, reals=bool(self.takes_reals))
        table = self.table(positions, dtype=working_dtype(q.dtype))  # type: ignore[arg-type]
        return self.encode_both(q, k, table)


def _encode_both_as_apart(kind: type[QueryKeyEncoding]) -> None:
    """Where one side is defined anew, both are encoded by it: what is inherited knew the old one.

    Raises:
        TypeError: ``encode_both`` alone is defined anew.
    """
    if kind.encode_both is QueryKeyEncoding.encode_both:
        return
    order = kind.__mro__.index
    both = order(_where_defined(kind, "encode_both"))
    sides = [order(_where_defined(kind, name)) for name in ("encode_queries", "encode_keys")]
    if max(sides) > both:
        raise TypeError(
            f"{kind.__name__} defines encode_both and inherits what encodes one side, which a "
            f"call of attention or a cache uses alone. Define encode_queries and encode_keys."
        )
    if min(sides) < both:
        kind.encode_both = QueryKeyEncoding.encode_both  # type: ignore[method-assign]


class ScoreEncoding(FixedOnceBuilt, ABC):
    """Place three: a change of the attention scores, scaled but unmasked, before softmax.

    A class that names the axes of its table in the signature of its ``encode``, as
    ``table: Float[Tensor, "*rows heads q_len k_len"]``, need not check them: every call is held to
    them, and so is ``encode_output``. See ``posenc.encodings.signatures``.

    Attributes:
        heads: Number of query heads.
        is_relative: Claim: the change depends on positions by their difference alone.
        is_pairwise: Claim: the change of one score depends on its own query and key alone, not on
            the tokens between or beside them. Attention over parts of the keys needs that.
        reads_neighbors: Claim, denied where a class does not set it: the change reads tokens beside
            the key, and knows by positions that fall or repeat where a document ends or padding
            lies. Attention then refuses packed documents at positions that run on, and padding
            between tokens of one document.
        reads_later: Claim, denied where a class does not set it: the change reads keys after the
            query, as a mean over all keys does. It is for rows whose tokens all see each other;
            encoders refuse a cache.
        changes_output: Whether ``encode_output`` does anything.
        takes_reals: Claim: ``Coordinates`` stand wherever positions do, as exact as these.
        makes_anew: Whether it computes scores anew, so that what others made of them before is
            lost. ``Positional`` has it first among encodings of scores.
        reads_hidden: Whether it reads the hidden state, from which queries and keys are projected.
            Then ``encode`` takes ``q_features=`` and ``k_features=``, what ``query_features`` and
            ``key_features`` read there: a fourth projection, which a cache keeps as it keeps keys.
    """

    fixed = frozenset(
        {
            *("alibi_bias_max", "base", "bidirectional", "first", "max_distance"),
            *("buckets", "dim", "extent", "gates", "head_dim", "heads", "hidden", "key_stride"),
            *("kv_heads", "max_positions", "pretrained_window", "rank", "reach", "size", "terms"),
            *("class_token", "gate", "kernel", "trained_length", "width", "window"),
        }
    )
    meaning = frozenset(
        {
            *("bidirectional", "blend", "buckets", "clip", "far", "first", "is_causal", "kernel"),
            *(
                "key_stride",
                "max_distance",
                "negative_slope",
                "period",
                "pretrained_window",
                "scaled",
            ),
            *("threshold", "window"),
        }
    )

    heads: int
    is_relative: bool
    is_pairwise: bool
    changes_output: bool = False
    takes_reals: bool = False
    makes_anew: bool = False
    reads_hidden: bool = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        for name, held in (("encode", held_to_scores), ("encode_output", held_to_weights)):
            if name in vars(cls):  # not once more for what is inherited
                setattr(cls, name, held(vars(cls)[name]))
        super().__init_subclass__(**arguments)
        _refuse_forward(cls, ScoreEncoding)

    def check_beside(
        self, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
    ) -> None:
        """Refuse encodings of queries and keys beside which this one would not mean what it says.

        Most stand beside any, if what they hold does.

        Args:
            queries_keys: All that change queries and keys before scores are made of them.
            rotated_before: Whether queries and keys may come rotated, when none stands there.

        Raises:
            ValueError: By those that take queries and keys as some encoding leaves them.
        """
        for part in self.modules():
            if part is not self and isinstance(part, ScoreEncoding):
                part.check_beside(queries_keys, rotated_before=rotated_before)

    @abstractmethod
    def table(
        self,
        q_positions: Int64[Tensor, "..."] | Integers,
        k_positions: Int64[Tensor, "..."] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """What the two sets of positions alone say; points of a grid have an axis more."""

    @abstractmethod
    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Tensor,
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` changed by position.

        Args:
            scores: Products of queries and keys, scaled.
            table: Of these queries and keys.
            q: Queries, for encodings that depend on content.
            k: Keys, likewise.
            scale: What the products were multiplied with; 1/√head_dim if not given.
        """

    def encode_output(
        self,
        out: Float[Tensor, "*batch heads q_len value_dim"],
        weights: Float[Tensor, "*batch heads q_len k_len"],
        table: Tensor,
    ) -> Float[Tensor, "*batch heads q_len value_dim"]:
        """What attention gives, with what positions add to the values; most add nothing."""
        return out

    def query_features(
        self, hidden: Float[Tensor, "*batch q_len dim"]
    ) -> Float[Tensor, "*batch q_len _"] | None:
        """What it reads in the hidden state of each query; most read nothing."""
        return None

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len _"] | None:
        """What it reads in the hidden state of each key; most read nothing."""
        return None

    def forward(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        q_positions: Int64[Tensor, "..."] | Positions | None = None,
        k_positions: Int64[Tensor, "..."] | Positions | None = None,
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
        q_hidden: Float[Tensor, "*batch q_len dim"] | None = None,
        k_hidden: Float[Tensor, "*batch k_len dim"] | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``encode`` of ``table``; without positions, both sides stand at 0, 1, 2, …

        The hidden states are for encodings that read them, and taken by no other.

        Raises:
            TypeError: ``scores`` are not floating.
            ValueError: ``scores`` have fewer than three axes, or a hidden state would go unread.
        """
        check_dense(scores=scores, q=q, k=k, q_hidden=q_hidden, k_hidden=k_hidden)
        check_given(type(self).__name__, "scores", scores)
        if not self.reads_hidden and not (q_hidden is None and k_hidden is None):
            from posenc.encodings.scores.hidden import refuse_unread  # it names such classes

            refuse_unread(type(self).__name__)
        if q_positions is None:
            q_positions = consecutive(scores.shape[-2], device=scores.device)
        if k_positions is None:
            k_positions = consecutive(scores.shape[-1], device=scores.device)
        q_positions = checked(
            q_positions, "q_positions", device=scores.device, reals=bool(self.takes_reals)
        )
        k_positions = checked(
            k_positions, "k_positions", device=scores.device, reals=bool(self.takes_reals)
        )
        table = self.table(q_positions, k_positions, dtype=working_dtype(scores.dtype))  # type: ignore[arg-type]
        features = {}
        if self.reads_hidden:
            features = {
                "q_features": None if q_hidden is None else self.query_features(q_hidden),
                "k_features": None if k_hidden is None else self.key_features(k_hidden),
            }
        return self.encode(scores, table, q=q, k=k, scale=scale, **features)


class ScoreBias(ScoreEncoding):
    """A score encoding whose table is a number to add: ``[*batch, heads, q_len, k_len]``.

    Attention adds it without a call of ``encode``, so a class with an ``encode`` of its own is
    refused: that is a ``ScoreEncoding``.
    """

    is_pairwise = True

    head_axes: ClassVar[Mapping[str, int] | None] = None
    """The axis along which each parameter counts heads; ``None``: numbers of one head depend on
    parameters of others, and a part computes with all."""

    def __init_subclass__(cls, **named: Any):
        super().__init_subclass__(**named)
        if cls.encode is not ScoreBias.encode:
            raise TypeError(
                f"{cls.__name__} is a ScoreBias, whose table is added, and defines encode in "
                f"{_where_defined(cls, 'encode').__name__}, which attention would not call. Change "
                f"its table, or subclass ScoreEncoding."
            )

    def __add__(self, other: "ScoreBias") -> "ScoreBias":
        """Both as one bias, which holds both; of distance alone where both are.

        Raises:
            TypeError: ``other`` is no bias.
            ValueError: They were built for different numbers of heads.
        """
        from posenc.encodings.scores.sums import bias_sum  # it is made of this class

        return bias_sum(self, other) if isinstance(other, ScoreBias) else NotImplemented

    def __radd__(self, other: int) -> "ScoreBias":
        """``sum(biases)``, which begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __getitem__(self, heads: int | slice) -> "ScoreBias":
        """The bias of some heads, bit for bit, as for a rank that computes no others.

        Parameters are shared with the whole.

        Raises:
            IndexError: There is no such head.
            TypeError: ``heads`` is no number and no slice.
        """
        from posenc.encodings.scores.heads import bias_of_heads  # it is made of this class

        return bias_of_heads(self, heads)

    def take_heads(self, heads: slice) -> None:
        """Forget all other heads; asked of a copy, by ``bias_apart``."""
        for name, axis in (self.head_axes or {}).items():
            whole = getattr(self, name)
            if whole is not None:
                part = whole.detach().transpose(0, axis)[heads].transpose(0, axis).clone()
                setattr(self, name, nn.Parameter(part, requires_grad=whole.requires_grad))
        vars(self).update(heads=len(range(self.heads)[heads]))  # to set it is refused

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Float[Tensor, "*rows heads q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores + table``, added in float32 at least and rounded once.

        Raises:
            TypeError: ``scores`` are not floating.
            ValueError: The table is of other heads, queries or keys.
        """
        return (scores + table).to(scores.dtype)


class RelativeBias(ScoreBias):
    """A bias that knows only ``distance = q_position − k_position``; it gives ``profile`` alone.

    Attention reads the profile where rows are long and the table where they are short, so a class
    that defines one of them anew and inherits the other's definition is refused.
    """

    is_relative = True
    heads_of: "RelativeBias | None" = None
    """The bias whose profile this one's is some heads of, number by number, if there is one."""

    def __init_subclass__(cls, **named: Any):
        super().__init_subclass__(**named)
        table, profile = _where_defined(cls, "table"), _where_defined(cls, "profile")
        if table not in (RelativeBias, profile):
            new, old = sorted((table, profile), key=cls.__mro__.index)
            names = ("table", "profile") if new is table else ("profile", "table")
            raise TypeError(
                f"{cls.__name__} defines {names[0]} in {new.__name__} and {names[1]} in "
                f"{old.__name__}; attention reads either, by the length of rows. Define profile "
                f"alone, and beside it table = RelativeBias.table."
            )

    @abstractmethod
    def profile(
        self, distance: Int64[Tensor, "*shape"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The bias of every head at each distance."""

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Positions,
        k_positions: Int64[Tensor, "*batch k_len"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``profile`` at every pair of positions.

        Raises:
            TypeError: Positions are not integers, or ``dtype`` is no floating one.
            ValueError: Two of them are 2^63 or more apart.
        """
        floating(dtype)  # no profile is asked for one that it would be cut to
        distance = checked_distances(q_positions, k_positions, reals=bool(self.takes_reals))
        return self.profile(distance, dtype=dtype).movedim(0, -3)  # type: ignore[arg-type]
