"""``posenc.attention`` as an attention implementation of ``transformers``."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.backends import attention
from posenc.encodings.base import working_dtype
from posenc.encodings.bias import ScoreBias
from posenc.encodings.positional import Positional
from posenc.interop.told_mask import NAME, ToldMask, told_or_drawn

REFUSED = ("indices", "block_indices", "sinks", "cu_seq_lens_q")
"""Arguments of sparse attention, and documents that position ids do not tell of."""


def register_attention() -> str:
    """Make ``attn_implementation="posenc"`` known to ``transformers``.

    Models that use transformers' attention interface then run by ``posenc.attention``, with causal
    order, padding, windows, chunks, packed documents, grouped queries, soft capping, sinks, learned
    biases and any cache. Attention needs no memory of size queries × keys.

    Results are those of ``"eager"``, up to rounding; queries that are padding give zeros.
    ``output_attentions``, models that compute with their mask, and sparse attention raise an error
    when they run.

    Returns:
        The name.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2)
        >>> model, ids = LlamaForCausalLM(config).eval(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> model.set_attn_implementation(register_attention())
        >>> torch.allclose(model(ids).logits, before, atol=1e-5)
        True
        >>> unregister_attention()
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, told_or_drawn)
    return NAME


def unregister_attention() -> None:
    """Take the name out again; models that were set to it no longer run."""
    from transformers import AttentionInterface, AttentionMaskInterface

    for interface in (AttentionInterface, AttentionMaskInterface):
        interface._global_mapping.pop(NAME, None)


@dataclass(frozen=True, eq=False)
class ToldBias:
    """A bias that a model would hand on as a matrix."""

    encoding: ScoreBias | None  # what is added to scores; None where the model would add zeros
    counts_padding: bool = True  # whether distances count the padding between two tokens
    # Where the first query stands, the keys being 0, 1, 2, …; None where the model adds m · j for
    # key j, which is ALiBi of a query that no key it sees stands after.
    first: int | Tensor | None = None
    # As of a tensor, for models that ask.
    requires_grad = False


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: ToldMask | Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: ToldBias | Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """One layer of attention, called as ``transformers`` calls its attention interface.

    ``position_bias`` is added to scores; ``others`` must not change attention.

    Returns:
        ``[batch, q_len, heads, value_dim]``, and no weights.
    """
    _refuse(module, others)
    mask = attention_mask
    if mask is None:
        mask = _unsaid(module, is_causal, query, key, others.get("sliding_window"))
    told: dict[str, Any] = {"attn_mask": mask}
    if isinstance(mask, ToldMask):
        mask = mask.seen_by_last()
        key, value = key[:, :, : mask.k_len], value[:, :, : mask.k_len]
        told = mask.keywords(query.device)
    if isinstance(position_bias, Tensor):
        _add(told, position_bias[..., : key.shape[-2]])
    elif position_bias is not None and position_bias.encoding is not None:
        row = _by_key(mask, position_bias, query) if isinstance(mask, ToldMask) else None
        if row is not None:
            _add(told, row)
        else:
            told["positional"] = Positional(scores=position_bias.encoding)
            if isinstance(mask, Tensor):
                told |= _in_drawn(mask, position_bias, query, key)
            elif not position_bias.counts_padding and mask.has_holes():
                told |= _among_real(mask)
    sinks = None if s_aux is None else s_aux.flatten()
    named: dict[str, Any] = {"scale": scaling, "dropout_p": dropout, "softcap": softcap}
    out = attention(query, key, value, sinks=sinks, **named, **told)
    return out.transpose(1, 2).contiguous(), None


def _refuse(module: nn.Module, others: dict[str, Any]) -> None:
    if others.get("output_attentions") or _weights_are_collected():
        raise ValueError("attn_implementation='posenc' never forms attention weights.")
    if given := [name for name in REFUSED if others.get(name) is not None]:
        raise ValueError(f"{type(module).__name__} gives {given[0]}, which 'posenc' does not take.")


def _weights_are_collected() -> bool:
    """Whether a model around this layer collects attention weights, as models of version 5 do."""
    from transformers.utils import output_capturing

    collector = getattr(output_capturing, "_active_collector", None)
    if collector is None or torch.compiler.is_compiling():
        return False
    return any("attentions" in name for name in collector.get() or ())


def _unsaid(
    module: nn.Module, is_causal: bool | None, query: Tensor, key: Tensor, window: int | None
) -> ToldMask:
    """Who sees whom in a layer without a mask: its own flag says."""
    q_len, k_len = query.shape[-2], key.shape[-2]
    flag = getattr(module, "is_causal", True) if is_causal is None else is_causal
    windowed = window is not None and window < k_len
    if windowed or (flag and q_len > 1 and q_len != k_len):
        raise ValueError(f"{type(module).__name__} got no mask for {q_len} of {k_len} tokens.")
    return ToldMask(q_len, k_len, k_len - q_len, is_causal=bool(flag) and q_len > 1)


def _add(told: dict[str, Any], bias: Tensor) -> None:
    """Add a dense bias to the mask that is there."""
    mask = told.get("attn_mask")
    if mask is not None:
        drawn = mask.dtype == torch.bool
        bias = bias.masked_fill(~mask, -torch.inf) if drawn else bias + mask
    told["attn_mask"] = bias


def _by_key(mask: ToldMask, told: ToldBias, query: Tensor) -> Tensor | None:
    """What all queries alike add for each key; ``None`` where each adds its own.

    So it is where there is one, and where a model that adds m · j lets queries see later keys.
    """
    bias: Any = told.encoding
    rises = told.first is None and not mask.is_causal
    holes = not told.counts_padding and mask.has_holes()
    if (mask.q_len > 1 and not rises) or (mask.q_len == 1 and holes):
        return None
    queries, keys = mask.positions(query.device)
    if mask.q_len > 1:
        keys = _among_real(mask)["k_positions"] if holes else keys
        queries = keys[..., -1:]
    table = bias.table(queries, keys, dtype=working_dtype(query.dtype))
    return table if holes else table.unsqueeze(0)


def _among_real(mask: ToldMask) -> dict[str, Tensor]:
    """Positions that count real tokens alone, where padding stands between them."""
    padding: Any = mask.padding
    keys = (padding.long().cumsum(1) - 1).clamp(min=0)
    first = mask.first_query - mask.first_key
    q, q_padding = (x[:, first : first + mask.q_len] for x in (keys, padding))
    return {"q_positions": q, "k_positions": keys, "q_padding_mask": q_padding}


def _in_drawn(mask: Tensor, bias: ToldBias, query: Tensor, key: Tensor) -> dict[str, Tensor]:
    """Where queries and keys stand for a bias, beside a matrix that does not say so.

    In graphs masks are drawn, and a static cache has keys behind the last query. Where the model
    adds m · j, a query may be taken to stand at the last key that it sees. Where distances leave
    out padding, the matrix shows it, if it hides nothing besides but later keys.
    """
    rows, places = (torch.arange(x.shape[-2], device=x.device) for x in (query, key))
    if bias.first is not None:
        return {"q_positions": rows + bias.first, "k_positions": places}
    if mask.dtype != torch.bool:  # it may hide by any number
        return {"q_positions": places[-1:].expand(len(rows)), "k_positions": places}
    seen = mask.any(1)  # alike in all heads
    last = places.where(seen, -1).amax(-1)
    queries, keys = last.clamp(min=0), places
    if not bias.counts_padding:
        real = seen[:, -1:]
        is_of_padding = (seen == (real & (places <= last.unsqueeze(-1)))).all()
        queries = (seen.sum(-1) - 1).clamp(min=0).where(is_of_padding, queries)
        keys = (real[:, 0].cumsum(-1) - 1).clamp(min=0).where(is_of_padding, keys)
    return {"q_positions": queries, "k_positions": keys}
