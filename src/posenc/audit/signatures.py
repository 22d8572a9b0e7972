"""What names stand for: of parameters, of axes, and of sizes that a thing is built for."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

ROLES: dict[str, tuple[str, ...]] = {
    "q": ("q", "query", "queries", "xq", "query_states", "query_layer"),
    "k": ("k", "key", "keys", "xk", "key_states", "key_layer"),
    "cos": ("cos", "cosine", "cosines", "cos_cached"),
    "sin": ("sin", "sine", "sines", "sin_cached"),
    "cis": ("freqs_cis", "freqs", "freq_cis", "freqs_complex", "cis", "rope_cache"),
    "positions": (
        "positions", "position_ids", "position", "pos", "input_pos", "pos_ids", "pos_seq",
        "position_id",
    ),
    "offset": (
        "offset", "start_pos", "start", "seq_offset", "past_length", "past_len", "cache_len",
        "past_key_values_length", "past_seen_tokens", "seqlen_offset", "begin",
    ),
    "q_len": ("q_len", "query_length", "qlen", "seq_len_q", "query_len", "tgt_len", "len_q"),
    "k_len": ("k_len", "key_length", "klen", "seq_len_k", "key_len", "src_len", "len_k"),
    "length": (
        "max_seq_len_cached", "max_position_embeddings", "max_seq_len", "max_len", "max_length",
        "max_position", "block_size", "context_length", "num_positions", "length", "seq_len",
        "seqlen", "end", "n_position", "n_positions", "seq_length", "sequence_length", "n_ctx", "n",
        "num_embeddings", "maxlen", "n_tokens",
    ),
    "dim": (
        "org_channels", "head_dim", "head_size", "dim", "d_model", "embed_dim", "embedding_dim",
        "d", "hidden_size", "channels", "hidden_dim", "n_embd", "d_hid", "emb_dim", "emb_size",
        "dim_model", "d_head", "width", "demb",
    ),
    "heads": ("heads", "num_heads", "n_heads", "n_head", "nhead", "num_attention_heads", "h"),
    "scores": ("scores", "attn", "attention_scores", "attn_scores", "logits", "qk", "sim", "dots"),
    "mask": ("mask", "attention_mask", "padding_mask", "pad_mask"),
    "grid": ("grid_size", "grid"),
    "q_positions": ("q_positions", "q_pos", "query_positions"),
    "k_positions": ("k_positions", "k_pos", "key_positions"),
    "base": ("base", "theta", "rope_theta"),
    "dtype": ("dtype",),
    # of tokens, which no form takes: they are no positions
    "ids": ("input_ids", "token_ids", "idx", "src_tokens", "prev_output_tokens"),
    "x": (
        "x", "input", "inputs", "embeddings", "inputs_embeds", "hidden_states", "tokens",
        "token_embedding", "src", "tensor", "emb", "embedding", "embeds", "t",
    ),
}  # fmt: skip
"""For each role the names that public code gives it; of sizes, those of attributes first."""

AXES = {
    "b": ("b", "batch", "batch_size", "bsz", "bs"),
    "s": ("s", "seq", "seq_len", "t", "l", "length", "time", "seqlen", "sequence", "n"),
    "h": ("h", "heads", "num_heads", "n_heads", "n_h"),
    "d": ("d", "dim", "head_dim", "embed_dim", "embedding_dim", "d_model", "h_d", "c"),
}
"""For each axis of a shape in words its names."""

USUAL_WIDTHS = (64, 32, 16, 128)

BY_NAME = {name: role for role, names in ROLES.items() for name in names}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a call."""

    name: str
    role: str | None
    required: bool


def role_of(name: str) -> str | None:
    """What a parameter of this name stands for."""
    return BY_NAME.get(name.lower().strip("_"))


def parameters_of(thing: Any) -> list[Parameter]:
    """The parameters of a call of ``thing`` (of ``forward``, for a module); none if unknown."""
    called: Callable[..., Any] = thing.forward if isinstance(thing, nn.Module) else thing
    try:
        given = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    bound = called.keywords if isinstance(called, partial) else {}
    found = []
    for p in given:
        role = role_of(p.name)
        if role == "offset" and type(p.default) is int and p.default:
            role = None  # what is another number where it is left out is no place behind a cache
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in bound:
            found.append(Parameter(p.name, role, p.default is p.empty))
    return found


def applies(name: str) -> bool:
    """Whether a function of this name applies cosines and sines."""
    return "apply" in name and ("rot" in name or "rope" in name)


def unbound(thing: Any) -> Any:
    """The function of which some arguments are said; anything else as it is."""
    return thing.func if isinstance(thing, partial) else thing


def declared_layout(thing: Any) -> str | None:
    """The order of axes that a thing says of itself: ``batch_first``, or a shape in its words."""
    said = getattr(thing, "batch_first", None)
    if isinstance(said, bool):
        return "bsd" if said else "sbd"
    parts = unbound(thing), getattr(type(thing), "forward", None)
    told = " ".join(part.__doc__ or "" for part in parts if part is not None)
    for shape in re.findall(r"[\[(]([\w\s,*]+)[\])]", told):
        words = [part.strip().lower() for part in shape.split(",")]
        axes = [axis for word in words for axis, names in AXES.items() if word in names]
        if len(axes) == len(words) >= 3 and {"b", "s"} <= set(axes):
            return "".join(axes)
    return None


def _kept(thing: Any) -> tuple[list[Any], list[Tensor]]:
    """Its parts, and their parameters and buffers."""
    if not isinstance(thing, nn.Module):
        return [thing], []
    return [*thing.modules()], [t for t in (*thing.parameters(), *thing.buffers()) if t.ndim]


def widths_of(thing: Any) -> list[int]:
    """Widths that a thing may be built for, by its attributes and tensors, then the usual ones."""
    parts, tensors = _kept(thing)
    found = [getattr(part, name, None) for part in parts for name in (*ROLES["dim"], "rotary_dim")]
    for t in tensors:
        width = t.shape[-1]
        found += [2 * width, width] if t.ndim == 1 else [width, 2 * width]
        if t.ndim > 2 and width == 2:  # cos and sin in pairs
            found.append(2 * t.shape[-2])
    found = [w for w in found if isinstance(w, int) and 1 < w <= 8192]
    return list(dict.fromkeys((*found, *USUAL_WIDTHS)))


def lengths_of(thing: Any) -> list[int]:
    """Lengths that a thing may be built for: what it says, and the rows of its tensors."""
    said: list[Any] = []
    parts, tensors = _kept(thing)
    for part in parts:
        said += [getattr(part, name, None) for name in ROLES["length"]]
        said.append(getattr(getattr(part, "config", None), "max_position_embeddings", None))
        if isinstance(part, nn.Module):
            tensors += [v for v in vars(part).values() if isinstance(v, Tensor)]
    rows = sorted((n for t in tensors for n in t.shape[:-1] if n >= 4), reverse=True)
    return list(dict.fromkeys((*(n for n in said if type(n) is int and n > 1), *rows)))
