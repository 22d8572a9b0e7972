"""``posenc parity``: where do the bits of two rotary implementations part, and does it matter?"""

import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option
from posenc.cli.targets import arguments_in, imported

if TYPE_CHECKING:
    from posenc.audit.parity import Parity as Found
    from posenc.encodings.queries_keys import Rotary

MODEL = "model:"
SUFFIXES = (".safetensors", ".pt")


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
            metavar="A",
        ),
    ]
    b: Annotated[str, by_place, option("The other.", metavar="B")]
    config: Annotated[
        Optional[Path],
        option("The config.json that says what both compute.", metavar="CONFIG.json"),
    ] = None
    layer_type: Annotated[
        Optional[str],
        option("Of which layers of that, as full_attention, where they differ.", metavar="TYPE"),
    ] = None
    encoding: Annotated[
        Optional[str],
        option('The same as an expression, as "Rotary(128, base=500000)".', metavar="EXPRESSION"),
    ] = None
    dtype: Annotated[Literal["bfloat16", "float16", "float32"], option("Of queries and keys.")] = (
        "bfloat16"
    )
    length: Annotated[
        Optional[int],
        option("Number of positions.", metavar="N", shown="8192, or as many as there are"),
    ] = None
    weights: Annotated[
        Optional[Path],
        option(
            "A .safetensors file with tensors q and k, or with q_proj.weight and k_proj.weight.",
            metavar="FILE",
        ),
    ] = None
    layer: Annotated[int, option("Of which layer the projections are.", metavar="N")] = 0
    arguments: Annotated[
        str,
        option("Keyword arguments of own implementations, as JSON.", metavar="JSON"),
    ] = "{}"
    layout: Annotated[
        Optional[str],
        option("Order of axes of own implementations, as bhsd.", metavar="AXES"),
    ] = None
    call: Annotated[
        Optional[str],
        option("How to call own implementations, as posenc check.", metavar="PYTHON"),
    ] = None
    write: Annotated[
        Optional[Path],
        option(
            "Write the exact table, for both sides to load: .safetensors or .pt.", metavar="FILE"
        ),
    ] = None
    table: Annotated[
        Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"],
        option(
            "Its form: of vLLM and SGLang; transformers; torchtitan and Llama 4; flash-attention; "
            "torchtune."
        ),
    ] = "cos_sin_cache"
    seed: options.Seed = 0
    format: Annotated[Literal["text", "json"], option("How to print.")] = "text"

    def run(self) -> int:
        """Compares, prints, and says by the status whether bits differ."""
        import torch

        from posenc.cli.render import parity_report

        if self.length is not None and self.length < 1:
            raise UserError(f"--length is {self.length}; it must be at least 1")
        self._check_heeded()
        encoding, dtype = self._encoding(), getattr(torch, self.dtype)
        self._check_path(encoding)
        with redirect_stdout(sys.stderr):  # what own implementations print would stand in it
            found = self._compared(None if self.config else encoding, dtype)
        written = [] if self.write is None else self._written(encoding, found.length, dtype)
        parity_report.show(found, self.format, written)
        return found.status

    def _check_heeded(self) -> None:
        """Refuse what would change nothing."""
        from posenc.numerics.arithmetic import PROFILES

        own = {"arguments": self.arguments != "{}", "layout": self.layout, "call": self.call}
        if self.a in PROFILES and self.b in PROFILES and (named := [*filter(own.get, own)]):
            raise UserError(
                f"--{named[0]} is of own implementations, and {self.a} and {self.b} are profiles"
            )
        if self.layer_type is not None and self.config is None:
            raise UserError(
                f"--layer-type is {self.layer_type}, and there is no --config whose layers have "
                f"types"
            )
        if self.layer and self.weights is None:
            raise UserError(f"--layer is {self.layer}, and there are no --weights to take it of")

    def _compared(self, encoding: "Rotary | None", dtype: Any) -> "Found":
        from posenc.audit import CannotCheckError
        from posenc.audit.parity import parity

        said = {"arguments": arguments_in(self.arguments), "layout": self.layout, "call": self.call}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of what is compared
            try:
                return parity(
                    self._target(self.a),
                    self._target(self.b),
                    encoding=encoding,
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

    def _target(self, name: str) -> Any:
        from posenc.cli.errors import close
        from posenc.numerics.arithmetic import PROFILES

        if name in PROFILES:
            return name
        if name.startswith(MODEL):
            return Path(name.removeprefix(MODEL))
        if ":" not in name:
            listed = ", ".join(PROFILES)
            raise UserError(
                f"{name!r} is no profile{close(name, PROFILES) or f'; expected one of {listed}'}, "
                f"or MODULE:NAME, FILE.py:NAME or model:PATH"
            )
        return imported(name)

    def _config(self) -> Path | None:
        if self.config is None or not self.config.is_dir():
            return self.config
        return self.config / "config.json"

    def _encoding(self) -> "Rotary | None":
        from posenc.encodings.queries_keys import MultimodalRotary, Rotary

        if self.config is not None and self.encoding is not None:
            raise UserError("got --config and --encoding; leave one out")
        if self.config is not None:
            from posenc.interop.rotary_config import rotary_from_config

            try:
                found: Any = rotary_from_config(
                    self._config(), layer_type=self.layer_type, length=self.length
                )
            except ValueError as reason:
                words = str(reason).replace(", or call rotaries_from_config for one a layer", "")
                raise UserError(words.replace("layer_type=", "--layer-type ")) from None
            found = found.rotary if isinstance(found, MultimodalRotary) else found
        elif self.encoding is not None:
            from posenc.encodings.expression import encoding_from

            found = encoding_from(self.encoding)
        else:
            return None
        if not isinstance(found, Rotary):
            raise UserError(f"{found!r} is no Rotary; the profiles know no other encoding")
        return found

    def _check_path(self, encoding: "Rotary | None") -> None:
        """Refuse a file that cannot be written, before any work."""
        if self.write is None:
            if self.table != type(self).table:
                raise UserError(f"got --table {self.table} and no --write FILE to put it into")
            return
        from posenc.cli.files import check

        if encoding is None:
            raise UserError("--write needs --config or --encoding, which say what to write")
        if self.table == "complex" and self.write.suffix == ".safetensors":
            raise UserError("complex numbers go into a .pt file; give --write such a name")
        check(self.write, *SUFFIXES, weights=self.weights, config=self.config)

    def _written(self, encoding: Any, length: int, dtype: Any) -> list[str]:
        import torch

        from posenc.cli.files import placed
        from posenc.interop.engine_tables import engine_table

        assert self.write is not None
        dtype = torch.float32 if self.table == "complex" else dtype
        made = engine_table(encoding, length, self.table, dtype)
        with placed(self.write) as file:
            if self.write.suffix == ".pt":
                torch.save(made, file)
            else:
                file.write(_safetensors(made))
        shapes = ", ".join(f"{name} {list(x.shape)} {x.dtype}" for name, x in made.items())
        return [f"wrote {self.write}: {shapes}".replace("torch.", "")]


def _safetensors(made: dict[str, Any]) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise UserError(
            "safetensors is not installed; pip install safetensors, or --write FILE.pt"
        ) from None
    return save(made)
