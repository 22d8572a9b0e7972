"""``posenc convert``: a checkpoint whose queries and keys have the other pairing."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from posenc.cli.errors import UserError
from posenc.cli.files import check, config_in, placed, placed_folder
from posenc.inspection.safetensors_header import PACKED, Header, read_header, shards_of
from posenc.interop.configurations import NESTS, read, read_whole
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.weights import RowOrders, row_orders
from posenc.interop.weights.checkpoint import MARK, check_convertible, stored_pairing

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


def convert(asked: Any) -> None:
    path = asked.weights
    if path.is_dir():
        path = next((path / name for name in (INDEX, SINGLE) if (path / name).is_file()), path)
    if path.is_dir():
        raise UserError(f"{path} holds neither {INDEX} nor {SINGLE}; name the file")
    folder, index = path.parent, path if path.suffix == ".json" else None
    names = [path.name] if index is None else shards_of(index)
    config = config_in(asked.config or folder)
    if not config.is_file():
        raise UserError(f"{config} is not there; give the model's own with --config")
    if index is None:
        check(asked.output, "", ".safetensors", config=config)
    values = dict(read_whole(config).values)
    headers = {name: read_header(folder / name) for name in names}
    _mark(values, _marked(headers, values))
    now = stored_pairing(read_whole(values))
    to: Any = asked.to or ("half" if now == "interleaved" else "interleaved")
    check_convertible(values, to)
    shapes = {n: e.shape for held in headers.values() for n, e in held.entries.items()}
    orders = row_orders(values, shapes)
    mark = None if to == pairing_of_code(read(values)) else to
    if index is None:
        _write(path, asked.output, headers[path.name], orders, to, mark)
    else:
        with placed_folder(asked.output) as growing:
            for name, header in headers.items():
                (growing / name).parent.mkdir(parents=True, exist_ok=True)
                _write(folder / name, growing / name, header, orders, to, mark)
            shutil.copyfile(index, growing / index.name)
            _mark(values, mark)
            told = json.dumps(values, indent=2, ensure_ascii=False)
            (growing / "config.json").write_text(told + "\n", encoding="utf-8")
    print(f"{len(orders)} of {len(shapes)} tensors were brought from {now} to {to}.")


def _write(
    source: Path, output: Path, header: Header, orders: RowOrders, to: Any, mark: str | None
) -> None:
    """The file again with its new header; then rows change their places in it, by head."""
    with source.open("rb") as file, placed(output) as target:
        file.seek(header.start)
        target.write(header.with_metadata(MARK, mark).encoded())
        begin = target.tell()
        shutil.copyfileobj(file, target)
        target.flush()
        for name in orders.keys() & header.entries.keys():
            order, each = orders[name], header.entries[name]
            rows, group = order.rows(each.shape), order.width * len(order.pattern)
            size = each.end - each.begin
            if each.dtype in PACKED or size % rows:
                raise UserError(f"{name} has dtype {each.dtype}, in which rows are packed")
            index = order.index(group, to).numpy()
            held = np.memmap(target, "u1", "r+", begin + each.begin, (size,))  # type: ignore[call-overload]
            for heads in held.reshape(rows // group, group, -1):
                heads[:] = heads[index]


def _marked(headers: dict[str, Header], values: dict[str, Any]) -> str | None:
    """The pairing that the files, or their configuration, say they were converted to."""
    found = {(held.metadata or {}).get(MARK) for held in headers.values()}
    noted = _text(values).get(MARK)
    if len(found) > 1 or len({noted, *found} - {None}) > 1:
        raise UserError(f"files and configuration do not say the same {MARK}; fetch them again")
    return found.pop() or noted


def _text(values: dict[str, Any]) -> dict[str, Any]:
    """What is said of the language model: of some files, in a part of their own."""
    nested = next((name for name in NESTS if isinstance(values.get(name), dict)), None)
    return values if nested is None else _text(values[nested])


def _mark(values: dict[str, Any], mark: str | None) -> None:
    text = _text(values)
    text.pop(MARK, None)
    if mark is not None:
        text[MARK] = mark
