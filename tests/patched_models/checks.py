"""The checks that every patched model passes: against itself unpatched, each by its own name."""

import tempfile
from collections.abc import Callable
from typing import Any

import torch
from tests.patched_models.building import IDS, answers, built, generates, inputs, listens, loaded
from torch import Tensor

from posenc.interop.huggingface import Patch, patch

Check = Callable[[str], None]

NEAR = 5e-5
"""Angles of a dozen positions are off by 5e-7 in float32, which a few layers pass on."""

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

MIXED = {"sliding_attention": YARN, "full_attention": {"rope_type": "proportional", "factor": 4.0}}
WITHIN = {"rope_type": "yarn", "factor": 4.0}
OTHERS: dict[str, Any] = {
    "gemma4_text": MIXED,
    "gemma4": MIXED,
    "ministral3": WITHIN,
    "mistral4": WITHIN,
}
"""What a type is extended with instead: pairs stand still that YaRN would set turning, or the
trained length is the period of the temperature of queries, too, and none but its own is taken."""


def agree(one: Tensor, other: Tensor, near: float = NEAR) -> None:
    """As near as a share of the largest, and finite."""
    assert torch.isfinite(other).all()
    size = max(1.0, float(other.abs().max()))
    assert float((one - other).abs().max()) <= near * size


def logits(name: str) -> None:
    """The same answers, saved and loaded, too, and the same bits after undoing."""
    model = built(name)
    before, keys = answers(model), list(model.state_dict())
    patched = patch(model)
    assert patched.config_follows
    assert list(model.state_dict()) == keys
    agree(answers(model), before)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        agree(answers(loaded(model, folder)), before)
    patched.undo()
    assert torch.equal(answers(model), before)


def generation(name: str) -> None:
    """The same continuation with the cache and without it, and the same best of three beams."""
    model = built(name)
    if not generates(model):
        return
    ask = {"input_ids": IDS, "max_new_tokens": 6, "do_sample": False}
    asked = [ask] if model._is_stateful else [ask, ask | {"num_beams": 3}]
    if "deepseek_v32" not in name:  # its indexer needs the cache of its own
        asked.append(ask | {"use_cache": False})
    before = [model.generate(**each) for each in asked]
    with patch(model):
        assert all(map(torch.equal, [model.generate(**each) for each in asked], before))


def padding(name: str) -> None:
    """Rows that are padded on the left, with the positions that the mask says."""
    model = built(name)
    if listens(model):
        return
    pad = torch.full((1, 4), 1)
    padded = torch.cat([torch.cat([pad, IDS], 1), torch.cat([IDS, pad + 8], 1)])
    mask = torch.ones_like(padded)
    mask[0, :4] = 0
    named: dict[str, Any] = {"input_ids": padded, "attention_mask": mask}
    before = answers(model, **named)
    with patch(model):
        inside = answers(model, **named)
    agree(inside[mask.bool()], before[mask.bool()])


def dtypes(name: str) -> None:
    """In float64 the same; in bfloat16 as near as its rounding; and back in float32 the same."""
    model = built(name)
    single = answers(model)
    for dtype, near in ((torch.float64, 1e-5), (torch.bfloat16, 0.2)):
        other = built(name).to(dtype)
        before = answers(other)
        patch(other)
        inside = answers(other)
        assert inside.dtype == before.dtype
        agree(inside.double(), before.double(), near)
    patch(model)
    agree(answers(model.to(torch.float64).float()), single)


def gradients(name: str) -> None:
    """Every parameter learns as before."""
    found = []
    for patched in (False, True):
        model = built(name)
        if patched:
            patch(model)
        out = model(**inputs(model))
        whole = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
        whole.square().mean().backward()
        found.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for key, before in found[0].items():
        size = max(1e-6, float(before.abs().max()))
        assert float((found[1][key] - before).abs().max()) <= 2e-3 * size, key


CHECKS: dict[str, Check] = {
    each.__name__: each for each in (logits, generation, padding, dtypes, gradients)
}
"""By name, as the table has them."""


def extension(name: str) -> Patch:
    """YaRN by a dictionary: other answers, and where the configuration follows, it is believed."""
    model = built(name)
    before, config = answers(model), model.config.to_json_string()
    said = model.config.architectures, model.config.dtype  # what saving sets
    patched = patch(model, rotary=OTHERS.get(name, YARN))
    inside = answers(model)
    assert float((inside - before).abs().max()) > 1e-6
    if patched.config_follows:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            agree(answers(loaded(model, folder)), inside)
    patched.undo()
    assert torch.equal(answers(model), before)
    model.config.architectures, model.config.dtype = said
    assert model.config.to_json_string() == config
    return patched
