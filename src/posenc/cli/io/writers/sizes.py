"""How large a file will be, before it is written."""

import torch

from posenc.cli.io.batches import Batches
from posenc.cli.io.digits import digits
from posenc.cli.io.writers.batch import Manifest
from posenc.cli.io.writers.npz import npz_metadata
from posenc.cli.io.writers.safetensors import encoded_header

# Tokens whose digits are counted to tell how long those of all will be.
SAMPLE = 64

# Row, line, position, token and id of a line of csv, or their share of a row of json.
BESIDE = 28


EXACT = (".safetensors",)
"""Kinds of files whose size is known to the byte."""

# What a zip archive and npy add to an array: two headers, and an entry of the directory.
MEMBER = 512


def expected(suffix: str, manifest: Manifest, batches: Batches) -> int:
    """Bytes of the file: as they will be in safetensors, about that many elsewhere."""
    if suffix == ".safetensors":
        return len(encoded_header(manifest)) + manifest.bytes()
    if suffix == ".npz":  # numpy holds four bytes a letter
        about = 4 * len(npz_metadata(manifest))
        return manifest.bytes() + about + MEMBER * (len(manifest.arrays()) + 1)
    ids = torch.arange(min(SAMPLE, batches.vectors.tokens))
    x, rows = batches.parts(ids, torch.arange(len(ids)) % len(batches.table))
    written = digits(batches.encoding.encode(x, rows).to(manifest.dtype))
    apart = {".csv": 1, ".json": 2}[suffix]
    mean = sum(len(number) + apart for row in written for number in row) / len(ids)
    about = len(npz_metadata(manifest)) if suffix == ".json" else 0
    return int(manifest.tokens * (mean + BESIDE)) + about


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
