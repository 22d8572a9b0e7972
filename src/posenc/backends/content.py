"""What attention reads, checked: content, masks over scores, numbers and flags."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import cast

import torch
from torch import Tensor

from posenc.backends.specification import LAYOUT
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.scores.hidden import refuse_unread
from posenc.guards import check_dense


def check_content(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    enable_gqa: bool | None,
    encoded_by: Positional | None,
) -> None:
    """Refuse queries, keys and values that do not belong together."""
    content = {"query": query, "key": key, "value": value}
    for name, x in content.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}; attention takes tensors {LAYOUT}.")
        check_dense(**{name: x})
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
    if not (query.dtype == key.dtype == value.dtype or _autocasts(query, key, value)):
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


def check_hidden(
    query: Tensor,
    key: Tensor,
    q_hidden: Tensor | None,
    k_hidden: Tensor | None,
    positional: Positional,
) -> None:
    """Refuse hidden states that are not of these tokens, or that no encoding reads."""
    encodings = cast("Sequence[ScoreEncoding]", positional.scores)
    given = q_hidden is not None or k_hidden is not None
    if given and not any(each.reads_hidden for each in encodings):
        refuse_unread(*(type(each).__name__ for each in encodings))
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


def _autocasts(*content: Tensor) -> bool:
    """Whether torch brings what it multiplies to one dtype by itself; it leaves float64."""
    if any(x.is_meta or x.dtype == torch.float64 for x in content):
        return False
    return torch.is_autocast_enabled(content[0].device.type)


def checked_positional(positional: object) -> Positional:
    """The encodings; none if not given."""
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


def check_numbers(*, dropout_p: object, scale: object, softcap: object, window: object) -> None:
    """Refuse numbers without meaning, each by its name."""
    if not (_is_number(dropout_p) and 0 <= cast(float, dropout_p) <= 1):
        raise _wrong("dropout_p", dropout_p, "a probability between 0 and 1")
    if scale is not None and not _is_number(scale):
        raise _wrong("scale", scale, "a number, or None for 1/√head_dim")
    if softcap is not None and not (_is_number(softcap) and float(cast(float, softcap)) > 0):
        raise _wrong("softcap", softcap, "a positive number, as 50.0, or None")
    if window is not None and (
        not isinstance(window, int | Integral) or isinstance(window, bool) or window < 1
    ):
        raise _wrong("window", window, "the number of positions a query sees, its own among them: "
                     "1 or more, or None")  # fmt: skip
    if window is not None and int(window) >= 2**63:  # torch would read 2^63 as −2^63
        raise _wrong("window", window, "less than 2^63, as positions are; None hides nothing")


def _is_number(value: object) -> bool:
    # A tensor would be multiplied into scores, but SDPA takes no tensor for a scale.
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return abs(float(value)) < float("inf")
    except OverflowError:  # of a number that no float holds
        return False


def _wrong(name: str, value: object, expected: str) -> Exception:
    kind = ValueError if isinstance(value, Real) and not isinstance(value, bool) else TypeError
    return kind(f"{name} is {_told(value)}; it must be {expected}.")


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Real | str | None):
        return repr(value)
    kind = type(value)
    module = "numpy." if (kind.__module__, kind.__name__) == ("numpy", "bool") else ""
    return f"a {module}{kind.__name__}"


def check_flags(**flags: object) -> None:
    """Refuse what is neither true nor false, each by its name."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {_told(value)}; it must be True or False.")


def checked_attn_mask(attn_mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Boolean or of float32 at least, with four axes."""
    if attn_mask is None:
        return None
    if not isinstance(attn_mask, Tensor):
        hint = " Pass it as positional=..." if isinstance(attn_mask, torch.nn.Module) else ""
        raise TypeError(f"attn_mask is {_told(attn_mask)}; it must be a tensor.{hint}")
    check_dense(attn_mask=attn_mask)
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


def checked_sinks(sinks: Tensor | None, query: Tensor) -> Tensor | None:
    """Attention sinks: one number a head, and the greatest of its dtype where it is ∞.

    Beside ∞ less ∞ a row would be no number; so it is the limit, in which a sink takes all.
    """
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
    return sinks.clamp(max=min(torch.finfo(t.dtype).max for t in (sinks, query)))
