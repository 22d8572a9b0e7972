"""``python -m posenc``: the command line."""

import sys

from posenc.cli.main import main

sys.exit(main())
