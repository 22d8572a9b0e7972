"""What others print stands in no document, whichever descriptors are closed."""

import subprocess
import sys

import pytest

SCRIPT = """
import os
from posenc.cli.io.aside import printed_aside

for closed in {closed}:
    os.close(closed)
with printed_aside():
    os.write(1, b"aside")
os.write(1, b"document")
"""


@pytest.mark.parametrize(("closed", "error"), [((), b"aside"), ((2,), b""), ((0, 2), b"")])
def test_what_is_printed_aside_is_in_no_document(closed, error):
    script = SCRIPT.format(closed=closed)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (run.stdout, run.stderr) == (b"document", error)
