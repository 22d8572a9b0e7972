"""``posenc parity``: where do the bits of two rotary implementations part, and does it matter?"""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_heeded, close
from posenc.cli.files import check, config_in, placed
from posenc.cli.options import File, SomeWhole, by_place, named
from posenc.cli.targets import named_by, printed_aside

if TYPE_CHECKING:
    from posenc.encodings.queries_keys import Rotary


@dataclass(frozen=True)
class Parity:
    """A trainer and a server may compute one formula in different orders and dtypes. --config or
    --encoding says which; --layout and --call are of own code, as in check.

    A side is a profile: transformers, vllm, vllm-native, sglang, megatron, torchtitan, torchtune,
    flash-attention, llama.cpp, mlx, exact. Or it is your own code, MODULE:NAME or FILE.py:NAME, or
    model:PATH, what transformers builds of a config.json.

    --write takes .safetensors or .pt. Tables: cos_sin_cache of vLLM and SGLang, cos_sin of
    transformers, complex of torchtitan and Llama 4, halves of flash-attention, pairs of torchtune.

    Exit status: 0 equal bits, 1 they differ, 2 could not be compared.
    """

    a: Annotated[str, by_place, named("A"), Doc("One side.")]
    b: Annotated[str, by_place, named("B"), Doc("The other.")]
    config: Annotated[Optional[Path], named("CONFIG.json"), Doc("What both compute.")] = None
    layer_type: Annotated[Optional[str], named("T"), Doc("Of which layers, as full_attention.")] = (
        None
    )
    encoding: Annotated[
        Optional[str], named("EXPRESSION"), Doc('What both compute, as "Rotary(128)".')
    ] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"], Doc("The dtype of queries and keys.")
    ] = "bfloat16"
    length: Annotated[SomeWhole, Doc("Number of positions (default: 8192).")] = None
    weights: Annotated[
        File, Doc("A .safetensors with tensors q and k, or q_proj.weight and k_proj.weight.")
    ] = None
    layer: Annotated[options.Whole, Doc("Of which layer the projections are.")] = 0
    arguments: Annotated[str, named("JSON"), Doc("Keyword arguments of own code.")] = "{}"
    layout: Annotated[Optional[str], named("AXES"), Doc("Order of axes, as bhsd.")] = None
    call: Annotated[Optional[str], named("PYTHON"), Doc("How to call own code.")] = None
    write: Annotated[File, Doc("Write the exact table, for both sides to load.")] = None
    table: Annotated[
        Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"], Doc("Its form.")
    ] = "cos_sin_cache"
    seed: options.Seed = 0
    format: options.TextOrJson = "text"

    def run(self) -> int:
        """Compares, prints, and says by the status whether bits differ."""
        import torch

        from posenc.audit import CannotCheckError
        from posenc.audit.parity import parity
        from posenc.cli import formats
        from posenc.cli.screen import print_folded
        from posenc.cli.shown.parity_report import lines

        encoding = self._encoding()
        if self.write is not None:
            kinds = (".pt",) if self.table == "complex" else (".safetensors", ".pt")
            check(self.write, *kinds, weights=self.weights, config=self.config)
        same = ("layer_type", "length", "weights", "layer", "seed")
        given: dict[str, Any] = {name: getattr(self, name) for name in same}
        if self.config is None:
            given["encoding"] = encoding
        else:
            given["config"] = config_in(self.config)
        said = {"arguments": json.loads(self.arguments), "layout": self.layout, "call": self.call}
        dtype, names = getattr(torch, self.dtype), (self.a, self.b)
        # What own implementations print or warn would stand in the report.
        with printed_aside(), warnings.catch_warnings(action="ignore"):
            try:
                sides = map(_target, names)
                found = parity(*sides, dtype=dtype, said=said, names=names, **given)
            except CannotCheckError as reason:
                raise UserError(f"could not compare {self.a} with {self.b}: {reason}") from None
        written = [self._written(encoding, found.length, dtype)] if self.write else []
        if self.format == "json":
            formats.print_json(found.as_dict(), written=written)
        else:
            print_folded([*lines(found), *written])
        return found.status

    def _encoding(self) -> "Rotary | None":
        from posenc.encodings.expression import encoding_from
        from posenc.encodings.queries_keys import MultimodalRotary, Rotary
        from posenc.interop.rotary_config import rotary_from_config

        check_heeded(self, encoding=self.config and "beside --config")
        if self.write and not (self.config or self.encoding):
            raise UserError("--write needs --config or --encoding")
        if self.encoding is not None:
            found: Any = encoding_from(self.encoding)
        elif self.config is None:
            return None
        else:
            try:
                path, kind = config_in(self.config), self.layer_type
                found = rotary_from_config(path, layer_type=kind, length=self.length)
            except ValueError as reason:
                raise UserError(str(reason).replace("layer_type", "--layer-type")) from None
            found = found.rotary if isinstance(found, MultimodalRotary) else found
        if not isinstance(found, Rotary):
            raise UserError(f"{found!r} is no Rotary; the profiles know no other encoding")
        return found

    def _written(self, encoding: Any, length: int, dtype: Any) -> str:
        import torch
        from safetensors.torch import save

        from posenc.interop.engine_tables import engine_table

        assert self.write is not None
        wide = torch.float32 if self.table == "complex" else dtype
        made = engine_table(encoding, length, self.table, wide)
        with placed(self.write) as file:
            if self.write.suffix == ".pt":
                torch.save(made, file)
            else:
                file.write(save(made))
        shapes = ", ".join(f"{name} {list(x.shape)} {x.dtype}" for name, x in made.items())
        return f"wrote {self.write}: {shapes}".replace("torch.", "")


def _target(name: str) -> Any:
    from posenc.numerics.arithmetic import PROFILES

    if ":" not in name and name not in PROFILES:
        known = close(name, PROFILES)
        raise UserError(f"{name!r} is no profile, MODULE:NAME or model:PATH{known}")
    return name if name in PROFILES else named_by(name)
