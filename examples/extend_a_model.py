"""Make a model of transformers read further than it was trained, and save it so that it says so.

python examples/extend_a_model.py --model path/of/a/model --factor 4 --output longer
python examples/extend_a_model.py          # a tiny model with random weights
"""

import argparse

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from posenc.inspection.rotary import inspect_config
from posenc.interop.huggingface import patch, unpatch


def loaded(path: str | None) -> torch.nn.Module:
    """What stands at ``path``; without one, a tiny model."""
    if path is not None:
        return AutoModelForCausalLM.from_pretrained(path, local_files_only=True).eval()
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=256, num_attention_heads=4, **sizes)
    return AutoModelForCausalLM.from_config(config).eval()


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with a model; never fetched")
    parser.add_argument("--type", default="yarn", choices=["yarn", "linear", "dynamic"])
    parser.add_argument("--factor", type=float, default=4.0)
    parser.add_argument("--output", help="a folder for the extended model")
    options = parser.parse_args()

    model = loaded(options.model)
    ids = torch.randint(model.config.vocab_size, (1, 64))
    before = model(ids).logits

    # First the same function with exact angles: if this changed anything, it would be wrong.
    patch(model)
    print(f"patched: logits differ by {(model(ids).logits - before).abs().max():.1e}")
    unpatch(model)

    length = int(model.config.max_position_embeddings * options.factor)
    patched = patch(model, rotary={"rope_type": options.type, "factor": options.factor})
    (layer, *_) = inspect_config(model.config, length=length).layers
    print(f"extended: {layer.scaling}, {layer.trained_length} to {layer.target_length} positions")
    print(f"the configuration follows: {patched.config_follows}")
    if options.output:
        model.save_pretrained(options.output)
        print(f"saved: {options.output}")


if __name__ == "__main__":
    main()
