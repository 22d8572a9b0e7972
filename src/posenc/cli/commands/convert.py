"""``posenc convert``: a checkpoint whose queries and keys have the other pairing."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from posenc.inspection.safetensors_header import Header
    from posenc.interop.weights import RowOrders

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MARK = "posenc_pairing"  # checkpoint.MARK of posenc.interop.weights, which would load torch


@dataclass(frozen=True)
class Convert:
    """The rows of query and key projections, their biases and norms change places; no number is
    changed, and converting back gives what was, bit for bit: every tensor, and the whole file where
    the safetensors library wrote it. Sharded checkpoints go from folder to folder: the shards,
    their index and config.json, and nothing else. What is written is streamed, and appears whole
    or not at all. The metadata of files, and in a folder config.json, say posenc_pairing.
    """

    weights: Annotated[
        Path,
        by_place,
        option(
            "A .safetensors file, an index of shards (.index.json), or the folder of either.",
            metavar="WEIGHTS",
        ),
    ]
    to: Annotated[
        Optional[Literal["half", "interleaved"]],
        option(
            "half pairs channels i and i + width/2, interleaved 2i and 2i + 1.",
            "half|interleaved",
            shown="the other",
        ),
    ] = None
    config: Annotated[
        Optional[Path],
        option("The model's config.json.", metavar="FILE", shown="config.json beside the weights"),
    ] = None
    output: Annotated[
        Optional[Path],
        option("The new file; of shards, the new folder.", metavar="OUT", short="-o"),
    ] = None

    def run(self) -> None:
        """Converts."""
        from posenc.inspection.safetensors_header import read_header
        from posenc.interop.weights import row_orders
        from posenc.interop.weights.checkpoint import check_convertible, stored_pairing

        if self.output is None:
            raise UserError("no --output is given; name the new file, as -o converted.safetensors")
        folder, names, index = self._files()
        self._check_output(folder, index)
        headers = {name: read_header(folder / name) for name in names}
        values = self._values(folder)
        pairing = _marked(headers, values)
        if pairing is not None:
            values = _marked_values(values, pairing)
        now = stored_pairing(_read(values))
        to = self.to or ("half" if now == "interleaved" else "interleaved")
        check_convertible(values, to)
        shapes = {n: e.shape for held in headers.values() for n, e in held.entries.items()}
        orders = row_orders(values, shapes)
        mark = None if to == _of_code(values) else to
        if index is None:
            self._write_file(folder / names[0], self.output, headers[names[0]], orders, to, mark)
        else:
            self._write_folder(folder, headers, orders, to, mark, index, values)
        print(f"{len(orders)} of {len(shapes)} tensors were brought from {now} to {to}.")

    def _files(self) -> tuple[Path, list[str], Path | None]:
        """The folder of the weights, the files in it, and their index where they have one."""
        from posenc.inspection.safetensors_header import shards_of

        path = self.weights
        if path.is_dir():
            found = [path / name for name in (INDEX, SINGLE) if (path / name).is_file()]
            if not found:
                raise UserError(f"{path} holds neither {INDEX} nor {SINGLE}; name the file")
            path = found[0]
        if path.suffix != ".json":
            return path.parent, [path.name], None
        names = shards_of(path)
        if missing := [name for name in names if not (path.parent / name).is_file()]:
            raise UserError(f"{path.parent / missing[0]} is in the index and not in the folder")
        return path.parent, names, path

    def _check_output(self, folder: Path, index: Path | None) -> None:
        """Refuses a file that is no checkpoint by its name, or the configuration itself."""
        from posenc.cli.files import check

        assert self.output is not None
        config = self.config or folder / "config.json"
        if index is None:
            check(self.output, "", ".safetensors", config=config)

    def _values(self, folder: Path) -> dict[str, Any]:
        path = self.config or folder / "config.json"
        if path.is_dir():
            path = path / "config.json"
        if not path.is_file():
            raise UserError(f"{path} is not there; give the model's own with --config")
        try:
            return dict(_read(path).values)
        except ValueError as error:
            raise UserError(str(error)) from None

    def _write_file(
        self,
        source: Path,
        output: Path,
        header: "Header",
        orders: "RowOrders",
        to: Any,
        mark: str | None,
    ) -> None:
        """The file again with its new header; then rows change their places in it, by head."""
        import numpy as np

        from posenc.cli.files import check_room, placed
        from posenc.inspection.safetensors_header import PACKED

        check_room(output, header.start + header.bytes)
        with source.open("rb") as file, placed(output) as target:
            file.seek(header.start)
            target.write(header.with_metadata(MARK, mark).encoded())
            begin = target.tell()
            shutil.copyfileobj(file, target)
            target.flush()
            for name, each in header.entries.items():
                if name not in orders:
                    continue
                order, size = orders[name], each.end - each.begin
                rows, group = order.rows(each.shape), order.width * len(order.pattern)
                if each.dtype in PACKED or size % rows:
                    raise UserError(f"{name} has dtype {each.dtype}, in which rows are packed")
                index = order.index(group, to).numpy()
                held = np.memmap(target, "u1", "r+", begin + each.begin, (size,))  # type: ignore[call-overload]
                for heads in held.reshape(rows // group, group, -1):
                    heads[:] = heads[index]
                held.flush()

    def _write_folder(
        self,
        folder: Path,
        headers: "dict[str, Header]",
        orders: "RowOrders",
        to: Any,
        mark: str | None,
        index: Path,
        values: dict[str, Any],
    ) -> None:
        from posenc.cli.files import check_room, placed_folder

        assert self.output is not None
        check_room(self.output, sum(each.start + each.bytes for each in headers.values()))
        with placed_folder(self.output) as growing:
            for name, header in headers.items():
                (growing / name).parent.mkdir(parents=True, exist_ok=True)
                self._write_file(folder / name, growing / name, header, orders, to, mark)
            shutil.copyfile(index, growing / index.name)
            told = json.dumps(_marked_values(values, mark), indent=2, ensure_ascii=False)
            (growing / "config.json").write_text(told + "\n", encoding="utf-8")


def _read(config: Any) -> Any:
    from posenc.interop.configurations import read_whole

    return read_whole(config)


def _of_code(values: dict[str, Any]) -> str:
    """The pairing by which the model's own code rotates."""
    from posenc.interop.configurations import read
    from posenc.interop.rope_models import pairing_of_code

    return pairing_of_code(read(values))


def _marked(headers: "dict[str, Header]", values: dict[str, Any]) -> str | None:
    """The pairing that the files say they were converted to."""
    found = {(held.metadata or {}).get(MARK) for held in headers.values()}
    if len(found) > 1:
        raise UserError("some of the shards were converted and some not; fetch them again")
    said, noted = found.pop(), _text(values).get(MARK)
    if said is not None and noted is not None and said != noted:
        raise UserError(f"the weights say {MARK} {said}, and their configuration {noted}")
    return said or noted


def _text(values: dict[str, Any]) -> dict[str, Any]:
    """What is said of the language model: of some files, in a part of their own."""
    from posenc.interop.configurations import NESTS

    nested = next((name for name in NESTS if isinstance(values.get(name), dict)), None)
    return values if nested is None else _text(values[nested])


def _marked_values(values: dict[str, Any], mark: str | None) -> dict[str, Any]:
    copy = json.loads(json.dumps(values))
    text = _text(copy)
    text.pop(MARK, None)
    if mark is not None:
        text[MARK] = mark
    return copy
