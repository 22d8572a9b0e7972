"""Files that appear whole or not at all."""

import csv
import errno
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where there is no space for a file."""

PART = ".part"


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes the name ``path`` once it is on disk."""
    passing = path.with_name(f".{path.name}.{secrets.token_hex(6)}{PART}")
    try:
        with open(passing, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(passing, path)
    finally:
        passing.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """``value`` as JSON that a person can read, whole or not at all."""
    with whole(path) as file:
        file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """What ``path`` holds; None if it is not there."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); remove it, and run again.") from None


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows with the same names, the names first."""
    found, text = list(rows), io.StringIO()
    writer = csv.DictWriter(text, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()
