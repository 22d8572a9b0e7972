"""How every type caches its keys, measured; `python -m tests.oracle_models.caching` writes them.

Caches are then held against those that the models compute themselves, at other positions and with
other frequencies. All tokens are the same one, so that computing again sees the same contents.
"""

import inspect
from pathlib import Path

import torch
from tests.oracle_models import building
from tests.oracle_models.converting import NARROW
from torch import nn

from posenc import MultimodalRotary
from posenc.interop.caches import KeyStorage, move_cached_keys
from posenc.interop.caches.storage import (
    ALIKE,
    by_layer,
    by_table,
    equal_contents,
    measured_storage,
)
from posenc.interop.configurations import read
from posenc.interop.rotary_config import read_layers_of

PATH = Path(__file__).parents[2] / "src/posenc/interop/caches/measured.txt"
THERE = torch.tensor([40, 3, 77, 5, 6, 60])


def kinds(storage: list[KeyStorage]) -> set[tuple[str, str]]:
    """Tensor and pairing of the layers that rotate."""
    found = set()
    for each in storage:
        if each.encoding is not None:
            held = each.encoding
            rotary = held.rotary if isinstance(held, MultimodalRotary) else held
            found.add((each.held, rotary.pairing))
    return found


def cached(model: nn.Module, positions: torch.Tensor):
    """The cache of equal tokens at these positions."""
    given = {"input_ids": torch.full((1, len(positions)), 5), "use_cache": True}
    if "attention_mask" in inspect.signature(model.forward).parameters:
        given["attention_mask"] = torch.ones(1, len(positions), dtype=torch.long)
    with torch.no_grad(), equal_contents(model):
        return model(**given, position_ids=positions[None]).past_key_values


def fault(model_type: str) -> str | None:
    """What goes wrong with a type; None where nothing does."""
    model = building.built(building.config_of(model_type, **NARROW.get(model_type, {})))
    known = read(model.config)
    storage = measured_storage(model)
    layers = by_layer(read_layers_of(known), len(storage))
    told = kinds([by_table(known, layer) for layer in layers])
    if kinds(storage) != told:
        return f"the table says {told}, measured was {kinds(storage)}"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return None
    return _moved_otherwise(model)


def _moved_otherwise(model: nn.Module) -> str | None:
    here = cached(model, torch.arange(len(THERE)))
    wanted = cached(model, THERE)
    move_cached_keys(here, model, THERE)
    for index, (ours, theirs) in enumerate(zip(here.layers, wanted.layers, strict=True)):
        for name in ("keys", "values"):
            one, other = getattr(ours, name, None), getattr(theirs, name, None)
            if not isinstance(one, torch.Tensor) or one.numel() == 0:
                continue
            if float((one - other).abs().max() / other.abs().max()) > ALIKE:
                return f"layer {index}: its {name} are not those computed again"
    return None


if __name__ == "__main__":
    PATH.write_text("\n".join(building.those_without(fault)) + "\n", encoding="utf-8")
