"""How large a file will be, before it is written."""

import torch

from posenc.cli.io.batches import Batches
from posenc.cli.io.digits import digits
from posenc.cli.io.writers.batch import Manifest

# Tokens whose digits are counted to tell how long those of all will be.
SAMPLE = 64

# Row, line, position, token and id of a line of csv, or their share of a row of json.
BESIDE = 28


def expected(suffix: str, manifest: Manifest, batches: Batches) -> int:
    """Bytes of the file: as they will be in a binary one, about that many in a text."""
    if suffix not in (".csv", ".json"):
        return manifest.bytes()
    ids = torch.arange(min(SAMPLE, batches.vectors.tokens))
    x, rows = batches.parts(ids, torch.arange(len(ids)) % len(batches.table))
    written = digits(batches.encoding.encode(x, rows).to(manifest.dtype))
    apart = {".csv": 1, ".json": 2}[suffix]
    mean = sum(len(number) + apart for row in written for number in row) / len(ids)
    return int(manifest.tokens * (mean + BESIDE))


def needed(suffix: str, manifest: Manifest, size: int) -> int:
    """Bytes that the disk must have: npz holds its small arrays twice for a moment."""
    return 2 * size - manifest.bytes("values") if suffix == ".npz" else size


def contents(manifest: Manifest) -> str:
    """What the file will hold, in words."""
    vectors = f"{manifest.tokens:,} vectors of {manifest.dim}"
    if not manifest.padded:
        return vectors
    cells = manifest.rows * manifest.longest
    padding = 100 * (cells - manifest.tokens) / cells
    return f"{vectors} in {manifest.rows:,} rows of {manifest.longest}, {padding:.0f} % padding"
