"""The arguments of ``attention``, checked, and what they say of queries and keys put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

from torch import Tensor

from posenc.backends.base import Sharded
from posenc.backends.content import (
    check_content,
    check_flags,
    check_hidden,
    check_numbers,
    checked_attn_mask,
    checked_positional,
    checked_sinks,
)
from posenc.backends.places import Places, check_places, counted_places, remapped_places
from posenc.backends.specification import AttentionSpecification
from posenc.backends.token_masks import TokenMasks
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional


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
        likely_real: ``[batch, q_len]``, false where a query is padding if it is one of the keys'
            tokens; None where that is known, or there is no padding.
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
    likely_real: Tensor | None = None

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
        q_hidden, k_hidden = self.q_hidden, self.k_hidden
        if q_hidden is not None:
            q_hidden = self._queries_without_padding(q_hidden, (-1,))
        padding = self.specification.padding_mask
        if k_hidden is not None and padding is not None:
            k_hidden = k_hidden.masked_fill(~padding.unsqueeze(-1), 0.0)
        return q_hidden, k_hidden

    def without_padding(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values with zeros where they are padding.

        Hidden keys have weight 0, but 0 times a NaN left in padding would be NaN.
        """
        spec, (query, key, value) = self.specification, (self.query, self.key, self.value)
        query = self._queries_without_padding(query, (1, -1))
        if spec.padding_mask is not None:
            hidden = ~spec.padding_mask[:, None, :, None]
            key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
        return query, key, value

    def _queries_without_padding(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """What queries have, with zeros in padding; of what may be padding, numbers are kept."""
        real = self.specification.q_padding_mask
        known = real is not None
        real = real if known else self.likely_real
        if real is None:
            return x
        for axis in axes:
            real = real.unsqueeze(axis)
        return x.where(real, 0.0 if known else x.nan_to_num(0.0, 0.0, 0.0))


def _float(number: float | None) -> float | None:
    """What torch multiplies with: it takes no fraction."""
    return None if number is None else float(number)


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
    shards: Sharded | None = None,
) -> Arguments:
    """The arguments of ``attention``, checked; see there."""
    positional = checked_positional(positional)
    if enable_gqa is not None:
        check_flags(enable_gqa=enable_gqa)
    check_content(query, key, value, enable_gqa, positional if keys_encoded is True else None)
    check_hidden(query, key, q_hidden, k_hidden, positional)
    check_numbers(dropout_p=dropout_p, scale=scale, softcap=softcap, window=window)
    dropout_p, scale, softcap = float(dropout_p), _float(scale), _float(softcap)
    if window is not None and type(window) is not int:
        window = int(window)  # numpy's wrap around, as masks compute with it
    check_flags(is_causal=is_causal, keys_encoded=keys_encoded)
    keys_are_cut = shards is not None and shards.cuts_keys_alone
    places = Places(query, key, q_positions, k_positions, keys_are_cut=keys_are_cut)
    masks = TokenMasks(
        places, padding_mask, q_padding_mask, document_ids, q_document_ids, cu_seqlens
    )
    check_places(places, positional, is_causal, window)
    remapped = remapped_places(positional, places, query.device)
    counted = counted_places(positional, places, masks.padding, remapped)
    specification = AttentionSpecification(
        batch=len(query),
        q_len=query.shape[-2],
        k_len=key.shape[-2],
        q_positions=places.q_positions,
        k_positions=places.k_positions,
        q_remapped=remapped,
        k_remapped=counted,
        is_causal=is_causal,
        window=window,
        padding_mask=masks.padding,
        q_padding_mask=masks.q_padding,
        documents=masks.documents,
        q_documents=masks.q_documents,
        attn_mask=checked_attn_mask(attn_mask, query, key),
        sinks=checked_sinks(sinks, query),
        softcap=softcap,
        device=query.device,
    )
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    return Arguments(
        query, key, value, positional, specification, scale, dropout_p, q_hidden, k_hidden,
        masks.of_likely_queries,
    )  # fmt: skip
