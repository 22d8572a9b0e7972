"""Modules of the public styles, right and wrong, written to be asked."""
