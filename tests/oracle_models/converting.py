"""Types whose whole models were brought to the other pairing and back: `… converting` writes them.

    python -m tests.oracle_models.converting

A tiny model of each type in float64 must give the same logits, and the same bits once it is back.
"""

import inspect
from pathlib import Path

import torch
from tests.oracle_models import building
from torch import nn

from posenc.interop.configurations import read
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.weights import convert_pairing, convert_weights, measured_types

PATH = Path(__file__).parents[2] / "src/posenc/interop/weights/converted.txt"

EQUAL = 1e-4
"""Share of the largest logit: norms and softmax of these models are in float32."""


NARROW = {
    name: {"hidden_size": 512, "head_dim": 128} for name in ("glm4_moe", "qwen3_omni_moe_text")
}
"""Types that are wide where no layout needs it: heads of 1024 channels."""


def model_of(model_type: str) -> nn.Module:
    """In float64, with queries and keys large enough to matter."""
    config = building.config_of(model_type, **NARROW.get(model_type, {}))
    config._experts_implementation = "eager"  # the others take no float64
    model = building.built(config).double()
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.ndim == 2 and any(part in name for part in ("q_", "k_", "qkv", "query")):
                each.mul_(5)
    return model


def outputs(model: nn.Module) -> torch.Tensor:
    heeded = inspect.signature(model.forward).parameters
    given = {"use_cache": False} if "use_cache" in heeded else {}
    with torch.no_grad():
        return model(input_ids=torch.arange(1, 10)[None], **given)[0]


def fault(model_type: str) -> str | None:
    """What goes wrong with a type; None where nothing does."""
    model = model_of(model_type)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    wanted = outputs(model)
    to = "half" if pairing_of_code(read(model.config)) == "interleaved" else "interleaved"
    with convert_pairing(model, to=to) as converted:
        given = outputs(model)
        after = {name: x.clone() for name, x in model.state_dict().items()}
    if not converted.orders:
        return "nothing was converted"
    if (share := (given - wanted).abs().max() / wanted.abs().max()) > EQUAL:
        return f"logits differ by {share:.2g}"
    if any(not torch.equal(x, before[name]) for name, x in model.state_dict().items()):
        return "it did not come back"
    if model_type in measured_types():
        alone = convert_weights(before, model.config, to=to)
        if any(not torch.equal(x, after[name]) for name, x in alone.items()):
            return "the state dict alone is converted otherwise"
    return None


if __name__ == "__main__":
    PATH.write_text("\n".join(building.those_without(fault)) + "\n", encoding="utf-8")
