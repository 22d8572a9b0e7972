"""``posenc parity``: where do the bits of two rotary implementations part, and does it matter?"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from posenc.cli import options
from posenc.cli.errors import UserError, check_least, close
from posenc.cli.files import check, placed
from posenc.cli.options import by_place, option
from posenc.cli.targets import MODEL, arguments_in, imported, printed_aside

if TYPE_CHECKING:
    from posenc.encodings.queries_keys import Rotary


@dataclass(frozen=True)
class Parity:
    """A trainer and a server may compute one formula in different orders and dtypes.
    Exit status: 0 equal bits, 1 they differ, 2 could not be compared. Profiles: transformers, vllm,
    vllm-native, sglang, megatron, torchtitan, torchtune, flash-attention, llama.cpp, mlx, exact.
    """

    a: Annotated[
        str,
        by_place,
        option(
            "A profile; or an own implementation, MODULE:NAME or FILE.py:NAME; or model:PATH, what "
            "transformers builds of a config.json.",
            "A",
        ),
    ]
    b: Annotated[str, by_place, option("The other.", "B")]
    config: Annotated[Optional[Path], option("It says what both compute.", "CONFIG.json")] = None
    layer_type: Annotated[Optional[str], option("Of which layers, as full_attention.", "T")] = None
    encoding: Annotated[Optional[str], option('The same, as "Rotary(128)".', "EXPRESSION")] = None
    dtype: Annotated[Literal["bfloat16", "float16", "float32"], option("Of queries and keys.")] = (
        "bfloat16"
    )
    length: Annotated[Optional[int], option("Number of positions.", "N", shown="8192")] = None
    weights: Annotated[
        Optional[Path],
        option(
            "A .safetensors file with tensors q and k, or with q_proj.weight and k_proj.weight.",
            "FILE",
        ),
    ] = None
    layer: Annotated[int, option("Of which layer the projections are.", "N")] = 0
    arguments: Annotated[str, option("Keyword arguments of own code, as JSON.", "JSON")] = "{}"
    layout: Annotated[Optional[str], option("Order of axes of own code, as bhsd.", "AXES")] = None
    call: Annotated[Optional[str], option("How to call own code, as in check.", "PYTHON")] = None
    write: Annotated[
        Optional[Path],
        option("Write the exact table, for both sides to load: .safetensors or .pt.", "FILE"),
    ] = None
    table: Annotated[
        Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"],
        option(
            "Its form: of vLLM and SGLang; transformers; torchtitan and Llama 4; flash-attention; "
            "torchtune."
        ),
    ] = "cos_sin_cache"
    seed: options.Seed = 0
    format: options.TextOrJson = "text"

    def run(self) -> int:
        """Compares, prints, and says by the status whether bits differ."""
        import torch

        from posenc.audit import CannotCheckError
        from posenc.audit.parity import parity
        from posenc.cli.render import parity_report

        encoding, dtype = self._encoding(), getattr(torch, self.dtype)
        self._check(encoding)
        said = {"arguments": arguments_in(self.arguments), "layout": self.layout, "call": self.call}
        # What own implementations print or warn would stand in the report.
        with printed_aside(), warnings.catch_warnings(action="ignore"):
            try:
                found = parity(
                    self._target(self.a),
                    self._target(self.b),
                    encoding=None if self.config else encoding,
                    config=self._config(),
                    layer_type=self.layer_type,
                    dtype=dtype,
                    length=self.length,
                    weights=self.weights,
                    layer=self.layer,
                    seed=self.seed,
                    said=said,
                    names=(self.a, self.b),
                )
            except CannotCheckError as reason:
                raise UserError(f"could not compare {self.a} with {self.b}: {reason}") from None
        written = [self._written(encoding, found.length, dtype)] if self.write else []
        parity_report.show(found, self.format, written)
        return found.status

    def _check(self, encoding: "Rotary | None") -> None:
        """Refuse what would change nothing, and a file that cannot be written."""
        from posenc.numerics.arithmetic import PROFILES

        check_least(1, length=self.length)
        profiles = self.a in PROFILES and self.b in PROFILES
        for wrong, said in (
            (profiles and self.arguments != "{}", "--arguments is of own implementations"),
            (profiles and self.layout, "--layout is of own implementations"),
            (profiles and self.call, "--call is of own implementations"),
            (self.layer_type and not self.config, "--layer-type, and there is no --config"),
            (self.layer and not self.weights, "--layer, and there are no --weights"),
            (self.table != "cos_sin_cache" and not self.write, f"--table {self.table}, no --write"),
            (self.write and encoding is None, "--write needs --config or --encoding"),
        ):
            if wrong:
                raise UserError(f"got {said}")
        if self.write is not None:
            kinds = (".pt",) if self.table == "complex" else (".safetensors", ".pt")
            check(self.write, *kinds, weights=self.weights, config=self.config)

    def _target(self, name: str) -> Any:
        from posenc.numerics.arithmetic import PROFILES

        if name in PROFILES:
            return name
        if name.startswith(MODEL):
            return Path(name.removeprefix(MODEL))
        if ":" not in name:
            known = close(name, PROFILES) or f"; expected one of {', '.join(PROFILES)}"
            raise UserError(f"{name!r} is no profile{known}, or MODULE:NAME, or model:PATH")
        return imported(name)

    def _config(self) -> Path | None:
        folder = self.config is not None and self.config.is_dir()
        return self.config / "config.json" if folder and self.config else self.config

    def _encoding(self) -> "Rotary | None":
        from posenc.encodings.expression import encoding_from
        from posenc.encodings.queries_keys import MultimodalRotary, Rotary
        from posenc.interop.rotary_config import rotary_from_config

        if self.config is not None and self.encoding is not None:
            raise UserError("got --config and --encoding; leave one out")
        if self.encoding is not None:
            found: Any = encoding_from(self.encoding)
        elif self.config is None:
            return None
        else:
            try:
                found = rotary_from_config(
                    self._config(), layer_type=self.layer_type, length=self.length
                )
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
        made = engine_table(
            encoding, length, self.table, torch.float32 if self.table == "complex" else dtype
        )
        with placed(self.write) as file:
            if self.write.suffix == ".pt":
                torch.save(made, file)
            else:
                file.write(save(made))
        shapes = ", ".join(f"{name} {list(x.shape)} {x.dtype}" for name, x in made.items())
        return f"wrote {self.write}: {shapes}".replace("torch.", "")
