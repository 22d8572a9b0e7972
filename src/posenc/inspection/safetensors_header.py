"""The header of a safetensors file, read and written without its tensors."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

LARGEST = 100 << 20
"""Bytes of a header: the format's own bound."""

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}
"""Bytes of a number; of dtypes that are not here, nothing is known."""

PACKED = frozenset({"U8", "I32", "U32", "F4", "F6_E2M3", "F6_E3M2"})
"""dtypes in which one number of a file holds several of the model."""


@dataclass(frozen=True)
class Entry:
    """One tensor: its dtype as the format names it, its shape, and where its bytes lie."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """Of one file.

    Attributes:
        entries: The tensors, as they are listed.
        metadata: Text by name; None without any.
        start: Where the bytes of the first tensor begin.
    """

    entries: dict[str, Entry]
    metadata: dict[str, str] | None
    start: int

    def with_metadata(self, name: str, value: str | None) -> "Header":
        """The same with one entry of the metadata changed, or left out."""
        held = {k: v for k, v in (self.metadata or {}).items() if k != name}
        if value is not None:
            held[name] = value
        return replace(self, metadata=held or None)

    def encoded(self) -> bytes:
        """The bytes before the first tensor, written as the format's own library writes them.

        Example:
            >>> Header({"a": Entry("F32", (1,), 0, 4)}, None, 0).encoded()[8:]
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
        """
        told: dict[str, Any] = {} if self.metadata is None else {"__metadata__": self.metadata}
        for name, each in self.entries.items():
            told[name] = {
                "dtype": each.dtype,
                "shape": list(each.shape),
                "data_offsets": [each.begin, each.end],
            }
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    @property
    def bytes(self) -> int:
        """All that the tensors take."""
        return max((each.end for each in self.entries.values()), default=0)


def read_header(path: Path) -> Header:
    """The header of a file, which must be whole.

    Raises:
        ValueError: It is no safetensors file, or a part of it is missing.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if 2 <= length <= min(LARGEST, size) else b""
    try:
        told = json.loads(text)
        metadata = told.pop("__metadata__", None)
        entries = {
            name: Entry(each["dtype"], tuple(each["shape"]), *each["data_offsets"])
            for name, each in told.items()
        }
        if not _lie_in_a_row(entries.values()):
            raise ValueError("gaps")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"{path} is no safetensors file; its header cannot be read.") from None
    header = Header(entries, metadata, 8 + length)
    if header.start + header.bytes != size:
        raise ValueError(
            f"{path} has {size} bytes, and its header speaks of {header.start + header.bytes}; "
            f"a part is missing: fetch it again."
        )
    return header


def shards_of(index: Path) -> list[str]:
    """The names of the files that an index (``model.safetensors.index.json``) speaks of.

    Raises:
        ValueError: It is no index, or names a file in another folder.
    """
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        strange = [name for name in names if ".." in Path(name).parts or Path(name).is_absolute()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{index} is no index of shards; it must have a weight_map.") from None
    if strange:
        raise ValueError(f"{index} names {strange[0]}, which is in another folder.")
    return names


def _lie_in_a_row(entries: Iterable[Entry]) -> bool:
    """Whether tensors are as long as they say, and follow each other without gaps."""
    reached = 0
    for each in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if each.begin != reached or each.end < each.begin or min(each.shape, default=0) < 0:
            return False
        size = SIZES.get(each.dtype)
        if size is not None and each.end - each.begin != size * prod(each.shape):
            return False
        reached = each.end
    return True
