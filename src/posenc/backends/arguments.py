"""The arguments of ``attention``, checked, and what they say of queries and keys put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from numbers import Real
from typing import Any, cast

import torch
from torch import Tensor

from posenc._guards import may_look
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional
from posenc.positions import Coordinates, checked, common_scale, consecutive, over_padding, runs

LAYOUT = "[batch, heads, seq, head_dim]"


@dataclass(frozen=True)
class Arguments:
    """What ``attention`` was given, checked.

    Attributes:
        query: Queries.
        key: Keys.
        value: Values.
        positional: Encodings; none if not given.
        specification: Who stands where, and who sees whom.
        scale: What products of queries and keys are multiplied with.
        dropout_p: Probability of dropping a weight.
        q_hidden: The hidden state of the queries' tokens, if given.
        k_hidden: That of the keys' tokens, if given.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    positional: Positional
    specification: AttentionSpecification
    scale: float
    dropout_p: float
    q_hidden: Tensor | None = None
    k_hidden: Tensor | None = None

    @property
    def queries_keys(self) -> Sequence[QueryKeyEncoding]:
        """Encodings of queries and keys, in order."""
        return cast("Sequence[QueryKeyEncoding]", self.positional.queries_keys)

    @property
    def scores(self) -> Sequence[ScoreEncoding]:
        """Encodings of scores, in order."""
        return cast("Sequence[ScoreEncoding]", self.positional.scores)

    def hidden_without_padding(self) -> tuple[Tensor | None, Tensor | None]:
        """The hidden states of queries and of keys with zeros where they are padding."""
        spec = self.specification
        sides = (self.q_hidden, spec.q_padding_mask), (self.k_hidden, spec.padding_mask)
        q_hidden, k_hidden = (
            x if x is None or real is None else x.masked_fill(~real.unsqueeze(-1), 0.0)
            for x, real in sides
        )
        return q_hidden, k_hidden

    def without_padding(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values with zeros where they are padding.

        Hidden keys have weight 0, but 0 times a NaN left in padding would be NaN.
        """
        spec, (query, key, value) = self.specification, (self.query, self.key, self.value)
        if spec.q_padding_mask is not None:
            query = query.masked_fill(~spec.q_padding_mask[:, None, :, None], 0.0)
        if spec.padding_mask is not None:
            hidden = ~spec.padding_mask[:, None, :, None]
            key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
        return query, key, value


def prepared(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool | None = None,
    positional: Positional | None = None,
    q_positions: Any = None,
    k_positions: Any = None,
    padding_mask: Tensor | None = None,
    q_padding_mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    q_document_ids: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    window: int | None = None,
    sinks: Tensor | None = None,
    softcap: float | None = None,
    keys_encoded: bool = False,
    q_hidden: Tensor | None = None,
    k_hidden: Tensor | None = None,
) -> Arguments:
    """The arguments of ``attention``, checked; see there."""
    positional = _checked_positional(positional)
    _check_content(query, key, value, enable_gqa, positional if keys_encoded is True else None)
    _check_hidden(query, key, q_hidden, k_hidden)
    _check_numbers(dropout_p=dropout_p, scale=scale, softcap=softcap, window=window)
    _check_flags(is_causal=is_causal, keys_encoded=keys_encoded)
    asked = _Asked(query, key, q_positions, k_positions)
    masks = _Masks(asked, padding_mask, q_padding_mask, document_ids, q_document_ids, cu_seqlens)
    _check_places(asked, positional, is_causal, window)
    remapped = _remapped(positional, asked, query.device)
    counted = _counted(positional, asked, masks.padding, remapped)
    specification = AttentionSpecification(
        batch=len(query),
        q_len=query.shape[-2],
        k_len=key.shape[-2],
        q_positions=asked.q_positions,
        k_positions=asked.k_positions,
        q_remapped=remapped,
        k_remapped=counted,
        is_causal=is_causal,
        window=window,
        padding_mask=masks.padding,
        q_padding_mask=masks.q_padding,
        documents=masks.documents,
        q_documents=masks.q_documents,
        attn_mask=_checked_attn_mask(attn_mask, query, key),
        sinks=_checked_sinks(sinks, query),
        softcap=softcap,
        device=query.device,
    )
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    return Arguments(
        query, key, value, positional, specification, scale, dropout_p, q_hidden, k_hidden
    )


# Content ------------------------------------------------------------------------------------------


def _check_content(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    enable_gqa: bool | None,
    encoded_by: Positional | None,
) -> None:
    content = {"query": query, "key": key, "value": value}
    for name, x in content.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}; attention takes tensors {LAYOUT}.")
        if not x.is_floating_point():
            raise TypeError(f"{name} is {x.dtype}; attention takes floating tensors {LAYOUT}.")
        if hasattr(x, "device_mesh"):
            raise TypeError(
                f"{name} is a DTensor, of which this rank holds a part. Pass local tensors, and "
                f"say by q_positions and k_positions where their tokens stand."
            )
    shapes = f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
    said = f"query, key and value have shapes {shapes}"
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ValueError(f"{said}; attention takes {LAYOUT}, four axes.")
    if not (query.dtype == key.dtype == value.dtype or _autocasts(query)):
        raise TypeError(
            f"query, key and value are {query.dtype}, {key.dtype} and {value.dtype}. Give all "
            f"three one dtype."
        )
    if not query.device == key.device == value.device:
        raise ValueError(
            f"query, key and value lie on {query.device}, {key.device} and {value.device}. Bring "
            f"them to one device."
        )
    for axis, name in ((1, "heads"), (3, "width")):
        if any(x.shape[axis] == 0 for x in content.values()):
            raise ValueError(f"{said}; without {name} there is nothing to attend with.")
    if query.shape[1] % key.shape[1]:
        raise ValueError(
            f"query has {query.shape[1]} heads, which {key.shape[1]} key heads cannot serve "
            f"evenly; {said}, read as {LAYOUT}. Pass keys whose heads divide those of the queries."
        )
    if enable_gqa is False and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"query has {query.shape[1]} heads and key {key.shape[1]}, and enable_gqa is False. "
            f"Leave it out, or give as many key heads."
        )
    width = query.shape[-1]
    for encoding in () if encoded_by is None else encoded_by.queries_keys:
        width = cast(QueryKeyEncoding, encoding).encoded_dim
    if width != query.shape[-1] and key.shape[-1] != width:
        raise ValueError(
            f"{said}; encoded keys are {width} wide here. Pass them as they were encoded, or leave "
            f"keys_encoded out."
        )
    if key.shape[:3] != value.shape[:3] or len(query) != len(key) or key.shape[-1] != width:
        raise ValueError(
            f"{said}. Give keys and values one batch, heads and length, and queries the batch and "
            f"width of keys, as {LAYOUT}."
        )


def _check_hidden(
    query: Tensor, key: Tensor, q_hidden: Tensor | None, k_hidden: Tensor | None
) -> None:
    if (q_hidden is None) != (k_hidden is None):
        raise ValueError(
            "The hidden state was given for one side alone. Pass q_hidden and k_hidden, or neither."
        )
    for name, hidden, x in (("q_hidden", q_hidden, query), ("k_hidden", k_hidden, key)):
        if hidden is None:
            continue
        if not isinstance(hidden, Tensor) or not hidden.is_floating_point():
            kind = hidden.dtype if isinstance(hidden, Tensor) else type(hidden).__name__
            raise TypeError(f"{name} is {kind}; it must be a floating tensor [batch, seq, dim].")
        if hidden.ndim != 3 or hidden.shape[:2] != (len(x), x.shape[-2]):
            raise ValueError(
                f"{name} has shape {tuple(hidden.shape)}; there are {len(x)} rows of "
                f"{x.shape[-2]} tokens, so it must be [{len(x)}, {x.shape[-2]}, dim]."
            )


def _autocasts(x: Tensor) -> bool:
    """Whether torch brings what it multiplies to one dtype by itself."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def _checked_positional(positional: object) -> Positional:
    if positional is None:
        return Positional()
    if not isinstance(positional, Positional):
        raise TypeError(
            f"positional is a {type(positional).__name__}; it takes Positional(queries_keys=..., "
            f"scores=...). Put the encoding in its place there."
        )
    for encoding in positional.queries_keys:
        if not getattr(encoding, "heads_first", True):
            raise ValueError(
                f"{type(encoding).__name__} was built with heads_first=False; attention takes "
                f"{LAYOUT}. Build it with heads_first=True, and exchange the axes of its content."
            )
    return positional


def _check_numbers(*, dropout_p: object, scale: object, softcap: object, window: object) -> None:
    if not (_is_number(dropout_p) and 0 <= cast(float, dropout_p) <= 1):
        raise _wrong("dropout_p", dropout_p, "a probability between 0 and 1")
    if scale is not None and not _is_number(scale):
        raise _wrong("scale", scale, "a number, or None for 1/√head_dim")
    if softcap is not None and not (_is_number(softcap) and cast(float, softcap) > 0):
        raise _wrong("softcap", softcap, "a positive number, as 50.0, or None")
    if window is not None and (
        not isinstance(window, int) or isinstance(window, bool) or window < 1
    ):
        raise _wrong("window", window, "the number of positions a query sees, its own among them: "
                     "1 or more, or None")  # fmt: skip


def _is_number(value: object) -> bool:
    # A tensor would be multiplied into scores, but SDPA takes no tensor for a scale.
    finite = isinstance(value, Real) and not isinstance(value, bool) and value == value
    return finite and abs(cast(float, value)) != float("inf")


def _wrong(name: str, value: object, expected: str) -> Exception:
    kind = ValueError if isinstance(value, Real) and not isinstance(value, bool) else TypeError
    return kind(f"{name} is {_told(value)}; it must be {expected}.")


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return repr(value) if isinstance(value, Real | str | None) else f"a {type(value).__name__}"


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {_told(value)}; it must be True or False.")


def _checked_attn_mask(attn_mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Boolean or of float32 at least, with four axes."""
    if attn_mask is None:
        return None
    if not isinstance(attn_mask, Tensor):
        hint = " Pass it as positional=..." if isinstance(attn_mask, torch.nn.Module) else ""
        raise TypeError(f"attn_mask is {_told(attn_mask)}; it must be a tensor.{hint}")
    if not (attn_mask.dtype == torch.bool or attn_mask.is_floating_point()):
        raise TypeError(
            f"attn_mask is {attn_mask.dtype}; it must be bool, true where a query may see a key, "
            f"or a floating number to add. For a mask of ones and zeros pass attn_mask.bool()."
        )
    full = (*query.shape[:-1], key.shape[-2])
    shape = tuple(attn_mask.shape)
    fits = len(shape) <= 4 and all(
        size == 1 or size == whole
        for size, whole in zip(reversed(shape), reversed(full), strict=False)
    )
    if not fits:
        raise ValueError(
            f"attn_mask has shape {shape}; it must broadcast to [batch, heads, q_len, k_len], here "
            f"{list(full)}."
        )
    if attn_mask.is_floating_point():
        attn_mask = attn_mask.to(torch.promote_types(query.dtype, torch.float32))
    four = attn_mask.reshape((1,) * (4 - len(shape)) + shape)
    return four.expand(-1, -1, *full[2:])


def _checked_sinks(sinks: Tensor | None, query: Tensor) -> Tensor | None:
    if sinks is None:
        return None
    if not isinstance(sinks, Tensor) or not sinks.is_floating_point():
        kind = sinks.dtype if isinstance(sinks, Tensor) else type(sinks).__name__
        raise TypeError(f"sinks are {kind}; they must be a floating tensor, one number a head.")
    if tuple(sinks.shape) != (query.shape[1],):
        raise ValueError(
            f"sinks have shape {tuple(sinks.shape)}; there are {query.shape[1]} query heads, so "
            f"they must be [{query.shape[1]}]."
        )
    return sinks


# Places -------------------------------------------------------------------------------------------


class _Asked:
    """Where queries and keys stand, and whether the queries are known to be among the keys."""

    def __init__(self, query: Tensor, key: Tensor, q_positions: Any, k_positions: Any):
        self.batch, self.q_len, self.k_len = len(query), query.shape[-2], key.shape[-2]
        if (q_positions is None) != (k_positions is None):
            raise ValueError(
                "Positions were given for one side alone. Pass q_positions and k_positions, or "
                "neither."
            )
        self.placed = q_positions is not None
        self.q_positions = self.k_positions = None
        if not self.placed:
            return
        same = q_positions is k_positions
        self.q_positions = self._fitting(q_positions, self.q_len, "q_positions", query.device)
        self.k_positions = (
            self.q_positions
            if same and self.q_len == self.k_len
            else self._fitting(k_positions, self.k_len, "k_positions", query.device)
        )
        if self.k_positions is not self.q_positions:
            self.q_positions, self.k_positions = _alike(self.q_positions, self.k_positions)
        if (self.q_positions.ndim > 2) != (self.k_positions.ndim > 2):
            raise ValueError(
                f"q_positions have shape {tuple(self.q_positions.shape)} and k_positions "
                f"{tuple(self.k_positions.shape)}; give both as a grid, or none."
            )

    @property
    def queries_are_keys(self) -> bool:
        """Whether queries and keys are the same tokens, in the same order."""
        if self.q_len != self.k_len:
            return False
        if self.q_positions is self.k_positions:
            return True
        assert self.q_positions is not None
        assert self.k_positions is not None
        return _equal(self.q_positions, self.k_positions)

    @property
    def queries_are_last(self) -> bool:
        """Whether the queries are the last of the keys, as without positions they are."""
        return self.queries_are_keys or (not self.placed and self.q_len <= self.k_len)

    def _fitting(
        self, positions: Any, seq: int, name: str, device: torch.device
    ) -> Tensor | Coordinates:
        positions = checked(positions, name, device=device, reals=True)
        shape, batch = tuple(positions.shape), self.batch
        if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
            raise ValueError(
                f"{name} have shape {shape}; there are {batch} rows of {seq} tokens, on the third "
                f"axis of {LAYOUT}. Pass [{seq}] for all rows alike, [{batch}, {seq}], or "
                f"[{batch}, {seq}, axes] for a grid."
            )
        return positions


def _equal(one: Tensor | Coordinates, other: Tensor | Coordinates) -> bool:
    """Whether both are known to be the same, as of one scale."""
    values = (side.values if isinstance(side, Coordinates) else side for side in (one, other))
    if one.shape != other.shape or not all(map(may_look, values)):
        return False
    equal = one == other
    return isinstance(equal, Tensor) and bool(equal.all())


def _alike(
    queries: Tensor | Coordinates, keys: Tensor | Coordinates
) -> tuple[Tensor | Coordinates, Tensor | Coordinates]:
    """Both in steps of one size, if one is of coordinates."""
    if not (isinstance(queries, Coordinates) or isinstance(keys, Coordinates)):
        return queries, keys
    here, there = common_scale(Coordinates(queries), Coordinates(keys))
    return here, there


def _check_places(
    asked: _Asked, positional: Positional, is_causal: bool, window: int | None
) -> None:
    """Refuse what would need a place of the queries that nobody has given."""
    if asked.q_positions is not None and asked.q_positions.ndim > 2:
        if window is not None:
            raise ValueError(
                f"window is {window} and positions are points of a grid, which have no distance "
                f"in one line. Pass attn_mask with the neighbors of each point."
            )
        if is_causal and not asked.queries_are_keys:
            raise ValueError(
                "is_causal is True, positions are points of a grid, and the queries are not the "
                "keys: nobody knows which keys come later in the row. Pass attn_mask."
            )
    if asked.placed or asked.q_len <= asked.k_len:
        return
    needs = {
        "is_causal": is_causal,
        "window": window is not None,
        "positional": len(positional.queries_keys) or len(positional.scores),
    }
    for name, needed in needs.items():
        if needed:
            raise ValueError(
                f"There are {asked.q_len} queries and {asked.k_len} keys, read as {LAYOUT}, and "
                f"{name} needs to know where the queries stand. Pass q_positions and k_positions."
            )


def _remapped(
    positional: Positional, asked: _Asked, device: torch.device
) -> Tensor | Coordinates | None:
    """Where encodings take the tokens to stand, if positions are remapped."""
    if not positional.remaps:
        return None
    if not asked.queries_are_keys:
        raise ValueError(
            "positional changes positions, and the queries are not the keys: both would be drawn "
            "apart. Pass q_positions and k_positions that are changed already, and leave "
            "Positional(positions=...) out."
        )
    places = asked.k_positions
    if places is None:
        places = consecutive(asked.k_len, device=device)
    return positional.remapped(places)


def _counted(
    positional: Positional,
    asked: _Asked,
    padding: Tensor | None,
    remapped: Tensor | Coordinates | None,
) -> Tensor | Coordinates | None:
    """Where encodings take the keys to stand, so that those that count tokens leave padding out."""
    scores = cast("Sequence[ScoreEncoding]", positional.scores)
    if padding is None or all(encoding.is_pairwise for encoding in scores):
        return remapped
    places = asked.k_positions if remapped is None else remapped
    if places is None:
        places = consecutive(asked.k_len, device=padding.device)
    if isinstance(places, Coordinates) or places.ndim > 2:
        return places
    return over_padding(places, padding)


# Padding and documents ----------------------------------------------------------------------------


class _Masks:
    """Padding and documents of both sides, one value a token; nothing is assumed of queries."""

    def __init__(
        self,
        asked: _Asked,
        padding_mask: Tensor | None,
        q_padding_mask: Tensor | None,
        document_ids: Tensor | None,
        q_document_ids: Tensor | None,
        cu_seqlens: Tensor | None,
    ):
        self.asked = asked
        self.padding = self._checked_padding("padding_mask", padding_mask, asked.k_len)
        self.q_padding = self._checked_padding("q_padding_mask", q_padding_mask, asked.q_len)
        if self.q_padding is None and self.padding is not None and asked.queries_are_last:
            self.q_padding = self.padding[:, asked.k_len - asked.q_len :]
        if cu_seqlens is not None:
            if document_ids is not None:
                raise ValueError(
                    "document_ids and cu_seqlens were given; both say which tokens are one "
                    "document. Pass one of them."
                )
            document_ids = self._ids_between(cu_seqlens)
        self.documents = self._checked_ids("document_ids", document_ids, asked.k_len)
        self.q_documents = self._checked_ids("q_document_ids", q_document_ids, asked.q_len)
        self._join_documents()

    def _join_documents(self) -> None:
        asked = self.asked
        if self.documents is None:
            if self.q_documents is not None:
                raise ValueError(
                    "q_document_ids were given without document_ids. Pass those of the keys too."
                )
            return
        if self.q_documents is not None:
            self._check_ids_are_unique(self.documents)
            return
        if not asked.queries_are_last:
            raise ValueError(
                f"document_ids were given for {asked.k_len} keys, and the {asked.q_len} queries "
                f"are not known to be these tokens or the last of them. Pass q_document_ids too."
            )
        self.documents = runs(self.documents)
        self.q_documents = self.documents[:, asked.k_len - asked.q_len :]

    def _check_ids_are_unique(self, ids: Tensor) -> None:
        """Refuse an id that is used for two documents of one row: which would a query mean?"""
        if not may_look(ids) or not ids.numel():
            return
        last = runs(ids)[:, -1].tolist()
        distinct = [len(row.unique()) for row in ids]
        for row, (documents, different) in enumerate(zip(last, distinct, strict=True)):
            if documents + 1 != different:
                raise ValueError(
                    f"Row {row} of document_ids has {documents + 1} documents and {different} ids. "
                    f"With q_document_ids each document needs an id of its own."
                )

    def _checked_padding(self, name: str, mask: Tensor | None, seq: int) -> Tensor | None:
        if mask is None:
            return None
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
            raise TypeError(
                f"{name} is {kind}; it must be bool [batch, seq], True where a token is real. For "
                f"a mask of ones and zeros pass mask.bool(); for one that is True at padding, as "
                f"torch.nn's key_padding_mask, pass ~mask."
            )
        self._check_shape(name, mask, seq)
        return mask

    def _checked_ids(self, name: str, ids: Tensor | None, seq: int) -> Tensor | None:
        if ids is None:
            return None
        ids = checked(ids, name)
        self._check_shape(name, ids, seq)
        return ids

    def _check_shape(self, name: str, given: Tensor, seq: int) -> None:
        batch = self.asked.batch
        if tuple(given.shape) != (batch, seq):
            side = "keys" if seq == self.asked.k_len and not name.startswith("q_") else "queries"
            raise ValueError(
                f"{name} has shape {tuple(given.shape)}; there are {batch} rows of {seq} {side}, "
                f"read as {LAYOUT}. Pass one value a token, [{batch}, {seq}]."
            )

    def _ids_between(self, cu_seqlens: Tensor) -> Tensor:
        ends = checked(cu_seqlens, "cu_seqlens")
        if ends.ndim != 1 or (may_look(ends) and not _is_partition(ends, self.asked.k_len)):
            told = ends.tolist() if may_look(ends) else tuple(ends.shape)
            raise ValueError(
                f"cu_seqlens is {told}; it must be one row that begins at 0, never falls, and ends "
                f"at the {self.asked.k_len} keys."
            )
        tokens = torch.arange(self.asked.k_len, device=ends.device)
        row = torch.bucketize(tokens, ends[1:].contiguous(), right=True)
        return row.expand(self.asked.batch, -1)


def _is_partition(ends: Tensor, length: int) -> bool:
    fits = len(ends) > 0 and int(ends[0]) == 0 and int(ends[-1]) == length
    return fits and not bool((ends.diff() < 0).any())
