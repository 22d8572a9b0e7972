"""The header of a safetensors file, read and written without its tensors."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

PACKED = frozenset({"U8", "I32", "U32", "F4", "F6_E2M3", "F6_E3M2"})
"""dtypes in which one number of a file holds several of the model."""


class Entry(NamedTuple):
    """One tensor: its dtype as the format names it, its shape, and where its bytes lie."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """Of one file."""

    entries: dict[str, Entry]  #: the tensors, as they are listed
    metadata: dict[str, str] | None  #: text by name; None without any
    start: int  #: where the bytes of the first tensor begin

    def with_metadata(self, name: str, value: str | None) -> "Header":
        """The same with one entry of the metadata changed, or left out."""
        held = {**(self.metadata or {}), name: value}
        kept = {key: text for key, text in held.items() if text is not None}
        return replace(self, metadata=kept or None)

    def encoded(self) -> bytes:
        """The bytes before the first tensor, as the format's own library writes them.

        Example:
            >>> Header({"a": Entry("F32", (1,), 0, 4)}, None, 0).encoded()[8:]
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
        """
        told: dict[str, Any] = {} if self.metadata is None else {"__metadata__": self.metadata}
        for name, (dtype, shape, *ends) in self.entries.items():
            told[name] = {"dtype": dtype, "shape": shape, "data_offsets": ends}
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    @property
    def bytes(self) -> int:
        """All that the tensors take."""
        return max((each.end for each in self.entries.values()), default=0)


def read_header(path: Path) -> Header:
    """The header of a file, which must be whole."""
    try:
        with safe_open(path, "np"):  # the library checks that tensors follow each other to the end
            pass
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file, or a part is missing: {error}.") from None
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        told = json.loads(file.read(length))
    metadata = told.pop("__metadata__", None)
    entries = {
        name: Entry(each["dtype"], tuple(each["shape"]), *each["data_offsets"])
        for name, each in told.items()
    }
    return Header(entries, metadata, 8 + length)


def shards_of(index: Path) -> list[str]:
    """The names of the files that an index (``model.safetensors.index.json``) speaks of."""
    told = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {})
    names = sorted({*told.values()})
    for name in names:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError(f"{index} names {name}, which is in another folder.")
    return names
