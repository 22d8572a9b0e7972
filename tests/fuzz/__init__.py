"""The hunter: random use, held against definitions. See ``python -m tests.fuzz --help``."""
